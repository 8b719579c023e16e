// Part 1: the visitor answers, and everything beside it moves with every answer.

import { get, join, me, personPath, picture, post, remove } from "./api.js";
import { called, el, levelBar, peopleMap, percent, say, svg, thumb, words } from "./dom.js";

const ENOUGH = 20;
const KEYS = { y: "yes", arrowright: "yes", n: "no", arrowleft: "no", s: "skip", u: "undo", backspace: "undo" };

export async function teach(room, { attribute, wording }) {
  await join();
  const map = await get("/v1/map", { attribute });
  const skipped = new Set();
  let view = null, busy = false;

  const question = el("section", { class: "card", "aria-labelledby": "question" });
  const beside = el("div");
  room.replaceChildren(el("div", { class: "grid" }, question, beside));

  async function look() {
    const given = { attribute, limit: 8, intervals: "ranks", n: Math.min(skipped.size + 1, 100) };
    view = await get(personPath("view"), given, { own: true });
    show();
  }

  const asked = () => view.ask.items.find((one) => !skipped.has(one.item));

  async function tell(item, label) {
    await post(personPath("labels"), { labels: [{ item, attribute, label }] }, { own: true });
  }

  const actions = {
    async yes() { await answer(true); },
    async no() { await answer(false); },
    async skip() {
      if (!asked()) return;
      skipped.add(asked().item);
      await look();
      say("Skipped.");
    },
    async undo() {
      const said = await get(personPath("labels"), {}, { own: true });
      const mine = said.labels.filter((one) => one.attribute === attribute);
      if (!mine.length) { say("There is no answer to take back."); return; }
      await tell(mine.at(-1).item, null);
      skipped.clear();
      await look();
      say(`Taken back. ${count()}.`);
    },
    async forget() {
      await remove(personPath("data"), { own: true });
      me.set(null);
      await join();
      skipped.clear();
      await look();
      say("Your answers are deleted. You can start again.");
    },
  };

  async function answer(label) {
    const one = asked();
    if (!one) return;
    await tell(one.item, label);
    await look();
    say(`${label ? "Yes" : "No"} to ${called(one)}. ${count()}. Closest to school ${view.standing.school}.`);
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

  const count = () => `${view.standing.labels} ${view.standing.labels === 1 ? "answer" : "answers"}`;

  function show() {
    const focused = document.activeElement?.dataset?.action;
    const one = asked();
    question.replaceChildren(
      el("h2", { id: "question" }, one ? wording.question : "You have judged everything"),
      one ? card(one) : el("p", {}, "There is nothing left to ask. Thank you."),
      el("div", { class: "answers" },
        button("no", "No", "N", !one), button("yes", "Yes", "Y", !one),
        button("skip", "Skip", "S", !one), button("undo", "Undo", "U", !view.standing.labels)),
      el("p", { class: "soft small", id: "count" }, `${count()}. ${view.standing.labels < ENOUGH ? "It asks for what tells it most about you." : "It knows you quite well by now."}`),
      el("progress", { max: ENOUGH, value: Math.min(view.standing.labels, ENOUGH), "aria-label": "Progress" }),
      el("div", { class: "row" }, button("forget", "Delete my answers", null, !view.standing.labels)));
    beside.replaceChildren(ranking(), standing());
    if (focused) question.querySelector(`[data-action="${focused}"]`)?.focus();
  }

  function button(name, text, letter, disabled) {
    const given = { type: "button", class: name, "data-action": name, disabled, onclick: () => act(name) };
    return el("button", given, text, letter ? el("kbd", { "aria-hidden": "true" }, letter) : null);
  }

  function card(one) {
    if (one.picture) {
      return el("figure", { class: "small", "data-item": one.item },
        el("img", { class: "picture", src: picture(one.item), alt: called(one) }),
        el("figcaption", { class: "soft" }, called(one)));
    }
    if (one.text) return el("blockquote", { class: "big", "data-item": one.item }, one.text);
    const rows = Object.entries(one.features).slice(0, 12);
    return el("div", { "data-item": one.item }, el("p", {}, one.item),
      el("dl", { class: "features" }, rows.map(([name, value]) => [el("dt", {}, words(name)), el("dd", {}, String(Math.round(100 * value) / 100))])));
  }

  function ranking() {
    const total = view.ranking.total;
    const pictures = view.ranking.items.some((one) => one.picture);
    const rows = view.ranking.items.map((one) => el("li", { "data-item": one.item },
      el("span", { class: "place" }, String(one.rank)), thumb(one), el("span", {}, called(one)), ranks(one, total)));
    return el("section", { class: "card", "aria-labelledby": "yours" },
      el("h2", { id: "yours" }, "Your ranking"),
      el("p", { class: "soft small" }, `The best of ${total}; bars say where each may stand (90 %). They shrink as you answer.`),
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

  function standing() {
    const { standing: place } = view;
    const several = place.membership.length > 1;
    return el("section", { class: "card", "aria-labelledby": "place" },
      el("h2", { id: "place" }, "Your place among the people"),
      peopleMap(map, [{ name: "You", at: place.coordinates }]),
      !place.labels
        ? el("p", { id: "school" }, several ? "Nothing is known about you yet: each school is as likely as it is large." : "Nothing is known about you yet.")
        : several
        ? el("p", { id: "school" }, "Closest to ", el("strong", {}, `school ${place.school}`), ` (${percent(Math.max(...place.membership))}), which ${place.school_name}.`)
        : el("p", { id: "school" }, map.axes.length
          ? "People differ gradually here; there are no separate schools."
          : "There is no difference between people here that labels can show."),
      el("h3", {}, "What your taste is made of"), levelBar(place.standing));
  }

  function onKey(event) {
    if (!room.isConnected || !question.isConnected) { document.removeEventListener("keydown", onKey); return; }
    const typing = event.target.closest("input, select, textarea");
    const name = KEYS[event.key.toLowerCase()];
    if (!name || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(name);
  }
  document.addEventListener("keydown", onKey);
  await look();
}
