// Part 1: the visitor answers, and each answer updates the ranking and the map.

import { get, join, me, userPath, picture, post, remove } from "./api.js";
import { briefly, called, capital, el, expectation, isNamed, levelBar, userMap, percent, put, say, sentence, svg, thumb, words } from "./dom.js";

// Answers that fill the progress bar; the largest number of grades as buttons, not on a slider.
const ENOUGH = 20, BUTTONS = 11;

export async function teach(room, { attribute, model, wording }) {
  await join();
  const map = await get("/v1/map", { attribute });
  const skipped = new Set();
  let view = null, busy = false;

  const question = el("section", { class: "card", "aria-labelledby": "question" });
  const beside = el("div");
  put(room, el("div", { class: "grid" }, question, beside));

  async function look() {
    const given = {
      attribute, limit: 8, intervals: "ranks", ask: Math.min(skipped.size + 1, 100),
      exclude_labelled: true,
    };
    view = await get(userPath("view"), given, { own: true });
    show();
  }

  const asked = () => view.ask.items.find((one) => !skipped.has(one.item));

  async function tell(item, label) {
    await post(userPath("labels"), { labels: [{ item, attribute, label }] }, { own: true });
  }

  // Answers by name: no and yes, or numbered grades.
  const votes = wording.noun === "statement", graded = wording.graded;
  const answers = wording.answers.map((one, index) => ({ ...one, text: capital(one.text), name: graded ? `grade-${index}` : ["no", "yes"][index] }));
  if (votes && !graded) answers.reverse();
  const actions = {
    ...Object.fromEntries(answers.map((one) => [one.name, () => answer(one)])),
    async slide() { await answer(answers[document.getElementById("grade").value]); },
    async skip() {
      if (!asked()) return;
      skipped.add(asked().item);
      await look();
      say(votes && !graded ? "Passed." : "Skipped.");
    },
    async undo() {
      const said = await get(userPath("labels"), {}, { own: true });
      const mine = said.labels.filter((one) => one.attribute === attribute);
      if (!mine.length) { say("There is no answer to undo."); return; }
      await tell(mine.at(-1).item, null);
      skipped.clear();
      await look();
      say(`Undone. ${count()}.`);
    },
    async forget() {
      await remove(userPath("data"), { own: true });
      me.set(null);
      await join();
      skipped.clear();
      await look();
      say("Your answers are deleted. You can start again.");
    },
  };

  // Keys: the first letter of an answer, the arrow to its side, or the text of a grade, such as 4.
  const keys = { [wording.skip[0].toLowerCase()]: "skip", u: "undo", backspace: "undo" };
  for (const one of answers) keys[graded ? one.text : one.text[0].toLowerCase()] = one.name;
  if (!graded) [keys.arrowleft, keys.arrowright] = answers.map((one) => one.name);

  async function answer(given) {
    const one = asked();
    if (!one) return;
    await tell(one.item, given.label);
    await look();
    const closest = view.profile.school === null ? "" : ` Closest to school ${view.profile.school}.`;
    say(`${given.text}: ${sentence(briefly(one))} ${count()}.${closest}`);
  }

  async function act(name) {
    if (busy) return;
    busy = true;
    question.setAttribute("aria-busy", "true");
    try {
      await actions[name]();
    } catch (problem) {
      say(problem.message);
      question.prepend(el("p", { class: "card problem", role: "alert" }, problem.message));
    } finally {
      busy = false;
      question.removeAttribute("aria-busy");
    }
  }

  const count = () => `${view.profile.labels} ${view.profile.labels === 1 ? "answer" : "answers"}`;

  function show() {
    const focused = document.activeElement?.dataset?.action;
    const one = asked();
    put(question,
      el("h2", { id: "question" }, one ? wording.question : `You have answered all ${wording.noun}s`),
      one ? card(one) : el("p", {}, "There are no more questions. Thank you."),
      graded ? grades(!one) : null,
      el("div", { class: "answers" },
        graded ? null : answers.map(({ name, text }) => button(name, text, text[0], !one)),
        button("skip", wording.skip, wording.skip[0], !one), button("undo", "Undo", "U", !view.profile.labels)),
      el("p", { class: "soft small", id: "count" }, `${count()}. ${view.profile.labels < ENOUGH ? "Each question is chosen to be the most informative." : "More answers make your ranking more certain."}`),
      el("progress", { max: ENOUGH, value: Math.min(view.profile.labels, ENOUGH), "aria-label": "Progress" }),
      el("div", { class: "row" }, button("forget", "Delete my answers", null, !view.profile.labels)));
    put(beside, ranking(), profile());
    if (focused) question.querySelector(`[data-action="${focused}"]`)?.focus();
  }

  function button(name, text, letter, disabled) {
    const given = { type: "button", class: name, "data-action": name, disabled, onclick: () => act(name) };
    return el("button", given, text, letter ? el("kbd", { "aria-hidden": "true" }, letter) : null);
  }

  // A button for each grade, worst to best; a slider if there are many.
  function grades(disabled) {
    if (answers.length <= BUTTONS) {
      const columns = answers.length > 6 ? Math.ceil(answers.length / 2) : answers.length;
      return el("div", { class: `grades of${columns}`, role: "group", "aria-labelledby": "question" }, answers.map(({ name, text }) => button(name, text, null, disabled)));
    }
    const middle = Math.floor(answers.length / 2), shown = el("output", { for: "grade" }, answers[middle].text);
    const slider = el("input", {
      id: "grade", type: "range", min: 0, max: answers.length - 1, value: middle, disabled, "aria-labelledby": "question",
      "aria-valuetext": answers[middle].text,
      oninput: ({ target }) => { shown.textContent = answers[target.value].text; target.setAttribute("aria-valuetext", shown.textContent); },
    });
    return el("div", { class: "slider" }, el("span", {}, answers[0].text), slider, el("span", {}, answers.at(-1).text), shown, button("slide", "Answer", null, disabled));
  }

  function card(one) {
    if (one.picture) {
      return el("figure", { class: "small", "data-item": one.item },
        el("img", { class: "picture", src: picture(one.item), alt: called(one) }),
        el("figcaption", { class: "soft" }, called(one)));
    }
    const rows = Object.entries(one.features).filter(([name]) => isNamed(name) && !name.startsWith("text: "));
    const binary = new Set(model.binary_features);
    if (one.text) {
      const kinds = rows.filter(([name, value]) => binary.has(name) && value).map(([name]) => words(name.split(": ").at(-1)));
      return el("div", { "data-item": one.item },
        el("blockquote", { class: one.text.length > 160 ? "long" : "big" }, one.text),
        kinds.length ? el("p", { class: "soft" }, kinds.join(", ")) : null);
    }
    const told = ([name, value]) => (binary.has(name) ? (value ? "yes" : "no") : String(Math.round(100 * value) / 100));
    return el("div", { "data-item": one.item }, el("p", { class: rows.length ? null : "big" }, one.item),
      rows.length ? el("dl", { class: "features" }, rows.slice(0, 12).map((row) => [el("dt", {}, words(row[0])), el("dd", {}, told(row))])) : null);
  }

  function ranking() {
    const total = view.ranking.total;
    const pictures = view.ranking.items.some((one) => one.picture);
    const rows = view.ranking.items.map((one) => el("li", { "data-item": one.item },
      el("span", { class: "place" }, String(one.rank)), thumb(one),
      el("span", { class: "name" }, el("span", { class: "clamped" }, called(one)), el("span", { class: "soft small" }, expectation(one, wording))), ranks(one, total)));
    return el("section", { class: "card", "aria-labelledby": "yours" },
      el("h2", { id: "yours" }, "Your ranking"),
      el("p", { class: "soft small" }, total
        ? `The best of ${total.toLocaleString("en")} ${wording.noun}s that you have not answered. Bars are 90 % intervals of ranks: they shrink as you answer.`
        : `You have answered all ${wording.noun}s.`),
      el("ol", { class: pictures ? "ranking" : "ranking plain" }, rows));
  }

  function ranks(one, total) {
    if (!one.ranks) return el("span");
    const at = (rank) => 6 + 188 * (rank - 1) / Math.max(total - 1, 1);
    const label = `Rank ${one.ranks[0]} to ${one.ranks[1]} of ${total}`;
    return svg("svg", { viewBox: "0 0 200 16", role: "img", "aria-label": label },
      svg("line", { class: "track", x1: 6, x2: 194, y1: 8, y2: 8 }),
      svg("line", { class: "span", x1: at(one.ranks[0]), x2: at(one.ranks[1]), y1: 8, y2: 8 }),
      svg("circle", { class: "dot", cx: at(one.rank), cy: 8, r: 4 }));
  }

  function profile() {
    const { profile: place } = view;
    const several = place.school !== null;
    return el("section", { class: "card", "aria-labelledby": "place" },
      el("h2", { id: "place" }, "Your place on the map of people"),
      userMap(map, [{ name: "You", at: place.coordinates }]),
      !place.labels
        ? el("p", { id: "school" }, several ? "Without answers, each school is as likely as its share of the people." : "Your place needs answers.")
        : several
        ? el("p", { id: "school" }, "Closest to ", el("strong", {}, `school ${place.school}`), sentence(` (${percent(Math.max(...place.membership))}), which ${place.school_name}`))
        : map.axes.length
        ? el("p", { id: "school" }, "People differ gradually here: there are no separate schools.")
        : null,
      el("h3", {}, "Levels of your ranking"), levelBar(place.level_shares, "Levels of your ranking"));
  }

  function onKey(event) {
    if (!room.isConnected || !question.isConnected) { document.removeEventListener("keydown", onKey); return; }
    const typing = event.target.closest("input, select, textarea");
    const name = keys[event.key.toLowerCase()];
    if (!name || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(name);
  }
  document.addEventListener("keydown", onKey);
  await look();
}
