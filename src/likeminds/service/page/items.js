// Part 4: most loved, most divisive, and why an item stands where it stands for the visitor.

import { get, join, me, picture, post } from "./api.js";
import { called, el, percent, say, signedBars, things, words } from "./dom.js";

export async function items(room, { attribute, wording }) {
  await join();
  const kinds = { loved: `What people ${wording.most}`, divisive: "What divides people most", mine: `What you ${wording.most}` };
  let kind = "loved", page = [];
  const list = el("div"), why = el("div", { id: "why" });
  const buttons = el("div", { class: "row", role: "group", "aria-label": "Which items" });
  room.replaceChildren(el("h2", {}, "Items"), buttons, el("div", { class: "grid" },
    el("section", { class: "card", "aria-label": "List of items" }, list),
    el("section", { class: "card", "aria-label": "Why this item" }, why)));

  async function load() {
    if (kind === "divisive") page = (await get("/v1/divisive", { attribute, limit: 24 })).items;
    else if (kind === "loved") page = (await post("/v1/rank", { attribute, top: 24 })).items;
    else page = (await post("/v1/rank", { attribute, top: 24, person: me.get().person }, { own: true })).items;
    await choose(page[0], false);
  }

  function show(chosen) {
    buttons.replaceChildren(...Object.entries(kinds).map(([name, text]) => el("button", {
      type: "button", "data-kind": name, "aria-pressed": String(name === kind),
      onclick: async () => { kind = name; await load(); buttons.querySelector(`[data-kind="${name}"]`).focus(); },
    }, text)));
    list.replaceChildren(things(page, { choose: (one) => choose(one, true), chosen: chosen?.item,
      note: (one) => (kind === "divisive" ? `spread ${one.spread.toFixed(2)}` : null) }));
  }

  async function choose(one, focus) {
    show(one);
    if (!one) return;
    const [mine, facts] = await Promise.all([
      post("/v1/explain", { item: one.item, attribute, person: me.get().person }, { own: true }),
      get("/v1/item", { item: one.item, attribute }),
    ]);
    why.replaceChildren(...explain(one, mine, facts));
    if (focus) {
      list.querySelector(`[data-item="${CSS.escape(one.item)}"]`)?.focus();
      say(`${called(one)}: ${mine.score.toFixed(2)} for you, compared with the average item.`);
    }
  }

  function explain(one, mine, facts) {
    const levels = ["consensus", "group", "personal", "item"].map((name) => ({
      name: { consensus: "all agree", group: "your school", personal: "your own", item: "this item" }[name], value: mine.levels[name], kind: name,
    }));
    const features = mine.features.slice(0, 6).map((part) => ({ name: words(part.feature), value: part.total, kind: "group" }));
    const range = mine.interval ? ` (90 %: ${mine.interval[0].toFixed(1)} to ${mine.interval[1].toFixed(1)})` : "";
    return [
      el("h3", {}, `Why ${called(one)}, for you`),
      one.picture ? el("img", { class: "picture", src: picture(one.item), alt: called(one) }) : null,
      el("p", {}, el("strong", { id: "score" }, mine.score.toFixed(2)), ` compared with the average item${range}.`),
      signedBars(levels, "What adds up to it"),
      el("h4", { class: "small" }, byFeature(mine.features)), signedBars(features, "By feature"),
      facts.schools?.length > 1 ? schools(facts) : null,
    ].filter(Boolean);
  }

  function schools(facts) {
    return el("table", {}, el("caption", { class: "small" }, "Share of the items that it beats"),
      el("tbody", {}, el("tr", {}, el("th", { scope: "row" }, "All agree"), el("td", { class: "number" }, percent(facts.consensus))),
        facts.schools.map((one) => el("tr", {}, el("th", { scope: "row" }, `School ${one.number}`), el("td", { class: "number" }, percent(one.beats))))));
  }

  await load();
}

function byFeature(features) {
  if (features.some((part) => !/\d$/.test(part.feature))) return "By feature";
  const learned = features.every((part) => part.feature.startsWith("learned"));
  return `By feature (they have no names: ${learned ? "learned from what people said" : "measured from pictures or texts"})`;
}
