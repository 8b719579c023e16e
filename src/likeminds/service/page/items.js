// Part 4: the best and the most divisive items, and the parts of the visitor's score.

import { get, join, me, picture, post } from "./api.js";
import { briefly, called, capital, el, expectation, isNamed, number, percent, put, say, signedBars, things, words } from "./dom.js";

export async function items(room, { attribute, wording }) {
  await join();
  const all = `${capital(wording.noun)}s`;
  const kinds = { loved: `${all} that people ${wording.most}`, divisive: `Most divisive ${wording.noun}s`, mine: `${all} that you ${wording.would_most}` };
  let kind = "loved", page = [];
  const list = el("div"), why = el("div", { id: "why" });
  const buttons = el("div", { class: "row", role: "group", "aria-label": `Which ${wording.noun}s` });
  put(room, el("h2", {}, all), buttons, el("div", { class: "grid" },
    el("section", { class: "card", "aria-label": `List of ${wording.noun}s` }, list),
    el("section", { class: "card", "aria-label": `Why this ${wording.noun}` }, why)));

  async function load() {
    if (kind === "divisive") page = (await get("/v1/divisive", { attribute, limit: 24 })).items;
    else if (kind === "loved") page = (await post("/v1/rank", { attribute, limit: 24 })).items;
    else page = (await post("/v1/rank", { attribute, limit: 24, user: me.get().user, exclude_labelled: true }, { own: true })).items;
    await choose(page[0], false);
  }

  function show(chosen) {
    buttons.replaceChildren(...Object.entries(kinds).map(([name, text]) => el("button", {
      type: "button", "data-kind": name, "aria-pressed": String(name === kind),
      onclick: async () => { kind = name; await load(); buttons.querySelector(`[data-kind="${name}"]`).focus(); },
    }, text)));
    put(list, page.length ? things(page, { choose: (one) => choose(one, true), chosen: chosen?.item,
      note: (one) => (kind === "divisive" ? `spread ${one.spread.toFixed(2)}` : expectation(one, wording)) })
      : el("p", { class: "soft" }, kind === "divisive" ? "People rank alike, as far as these labels show." : `There are no ${wording.noun}s left.`),
    kind === "loved" && wording.graded ? el("p", { class: "soft small" }, `Sorted by the lower 95 % bound of the score: ${wording.noun}s with few answers may come after others with a lower expected grade.`) : null);
  }

  async function choose(one, focus) {
    show(one);
    if (!one) { put(why); return; }
    const [mine, facts] = await Promise.all([
      post("/v1/explain", { item: one.item, attribute, user: me.get().user }, { own: true }),
      get("/v1/item", { item: one.item, attribute }),
    ]);
    put(why, explain(one, mine, facts));
    if (focus) {
      list.querySelector(`[data-item="${CSS.escape(one.item)}"]`)?.focus();
      say(`${briefly(one)}: ${number(mine.score)} for you, compared with the average ${wording.noun}.`);
    }
  }

  function explain(one, mine, facts) {
    const levels = ["consensus", "group", "personal", "item"].map((name) => ({
      name: { consensus: "consensus", group: "people like you", personal: "personal", item: `this ${wording.noun}` }[name], value: mine.levels[name], kind: name,
    }));
    const told = mine.features.filter((part) => isNamed(part.feature)), nameless = !told.length;
    const features = (nameless ? mine.features : told).slice(0, 6).map((part) => ({ name: words(part.feature), value: part.total, kind: "group" }));
    const range = mine.interval ? ` (90 %: ${number(mine.interval[0], 1)} to ${number(mine.interval[1], 1)})` : "";
    return [
      el("h3", {}, `For you: ${briefly(one)}`),
      briefly(one) === called(one) ? null : el("blockquote", { class: "long small" }, called(one)),
      one.picture ? el("img", { class: "picture", src: picture(one.item), alt: called(one) }) : null,
      el("p", {}, el("strong", { id: "score" }, number(mine.score)), ` compared with the average ${wording.noun}${range}. `, expectation(mine, wording)),
      signedBars(levels, "Parts of the score"),
      features.length ? [el("h4", { class: "small" }, byFeature(mine.features, nameless)), signedBars(features, "By feature")] : null,
      facts.schools?.length ? schools(facts) : null,
    ];
  }

  function schools(facts) {
    return el("table", {}, el("caption", { class: "small" }, `Share of the ${wording.noun}s that rank below it`),
      el("tbody", {}, el("tr", {}, el("th", { scope: "row" }, "Consensus"), el("td", { class: "number" }, percent(facts.consensus))),
        facts.schools.map((one) => el("tr", {}, el("th", { scope: "row" }, `School ${one.number}`), el("td", { class: "number" }, percent(one.beats))))));
  }

  await load();
}

function byFeature(features, nameless) {
  if (!nameless) return "By feature";
  const learned = features.every((part) => part.feature.startsWith("learned"));
  return `By feature (without names: ${learned ? "learned from labels" : "computed from pictures or texts"})`;
}
