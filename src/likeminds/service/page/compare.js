// Part 2: two people side by side, or a person and the consensus.

import { get, join, me, post } from "./api.js";
import { capital, el, isNamed, levelBar, number, userMap, percent, put, say, things, words } from "./dom.js";

const ALL = "\u0000all", YOU = "\u0000you";

export async function compare(room, { attribute, model, wording }) {
  await join();
  const visitor = model.access === "visitors";
  const [map, known] = await Promise.all([
    get("/v1/map", { attribute }),
    visitor ? { users: [] } : get("/v1/users", { limit: 500 }),
  ]);
  const users = known.users.filter((name) => name !== me.get().user);
  const names = new Map([[YOU, "you"], [ALL, "the consensus"], ...users.map((name) => [name, name])]);
  const result = el("div", { "aria-live": "polite" });
  const select = (id, label, value) => el("label", {}, label, el("select", { id, onchange: look },
    [...names].map(([code, name]) => el("option", { value: code, selected: code === value }, capital(name)))));
  put(room,
    el("h2", {}, "Compare two people"),
    el("div", { class: "choices" }, select("a", "First", YOU), select("b", "Second", ALL)),
    result);

  const who = (code) => (code === ALL ? null : code === YOU ? me.get().user : code);

  async function look() {
    const [a, b] = ["a", "b"].map((id) => document.getElementById(id).value);
    try {
      const found = await post("/v1/compare", { a: who(a), b: who(b), attribute }, { own: visitor });
      put(result, show(found, names.get(a), names.get(b)));
      say(`${capital(names.get(a))} and ${names.get(b)}: correlation of scores ${found.likeness.toFixed(2)}.`);
    } catch (problem) {
      put(result, el("p", { class: "card problem", role: "alert" }, problem.message));
    }
  }

  function show(found, a, b) {
    const both = (one) => `${percent(one.a)} / ${percent(one.b)}`;
    const list = (id, title, items) => el("section", { class: "card", "aria-labelledby": id },
      el("h3", { id }, title), items.length ? things(items, { note: both }) : el("p", { class: "soft" }, "None."));
    const meaning = found.likeness > 0.8 ? "nearly the same ranking" : found.likeness > 0.4 ? "much in common" : found.likeness > -0.2 ? "little in common" : "opposite rankings";
    return [
      el("div", { class: "grid" },
        el("section", { class: "card", "aria-labelledby": "alike" },
          el("h3", { id: "alike" }, "Correlation of their scores"),
          el("p", { class: "big", id: "likeness" }, found.likeness.toFixed(2)),
          el("p", { class: "soft" }, `1 is the same ranking, −1 the reverse: ${meaning}.`),
          el("h3", {}, capital(a)), levelBar(found.profiles[0].level_shares, capital(a)),
          el("h3", {}, capital(b)), levelBar(found.profiles[1].level_shares, capital(b))),
        el("section", { class: "card", "aria-labelledby": "where" },
          el("h3", { id: "where" }, "Map of people"),
          userMap(map, found.profiles.map((one, i) => ({ name: capital([a, b][i]), at: one.coordinates }))))),
      el("p", { class: "soft small" }, `Below each ${wording.noun}: the share of all ${wording.noun}s that rank below it, for ${a} / for ${b}.`),
      el("div", { class: "cards" },
        list("both", `${capital(wording.noun)}s that both ${wording.many}`, found.both_like),
        list("left", `Higher for ${a} than for ${b}`, found.a_prefers),
        list("right", `Higher for ${b} than for ${a}`, found.b_prefers)),
      features(found.features.filter((one) => isNamed(one.feature)), a, b),
    ];
  }

  function features(rows, a, b) {
    if (!rows.length) return null;
    return el("section", { class: "card" }, el("h3", {}, "Features with different weights"),
      el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Feature"), el("th", { scope: "col", class: "number" }, capital(a)), el("th", { scope: "col", class: "number" }, capital(b)))),
        el("tbody", {}, rows.map((one) => el("tr", {}, el("th", { scope: "row" }, words(one.feature)), el("td", { class: "number" }, number(one.a)), el("td", { class: "number" }, number(one.b)))))));
  }

  await look();
}
