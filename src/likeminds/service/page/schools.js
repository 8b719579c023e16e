// Part 3: what each school stands for, what divides them, and what all agree on.

import { get } from "./api.js";
import { el, peopleMap, percent, things } from "./dom.js";

export async function schools(room, { attribute }) {
  const given = { attribute };
  const [found, map, divisive, agreed] = await Promise.all([
    get("/v1/schools", given), get("/v1/map", given), get("/v1/divisive", { ...given, limit: 8 }),
    get("/v1/agreed", { ...given, limit: 8 }).catch((problem) => {
      if (problem.status === 404) return { items: [] };
      throw problem;
    }),
  ]);
  const several = found.schools.length > 1;
  const known = new Map([...divisive.items, ...agreed.items].map((one) => [one.item, one]));
  const shown = await Promise.all(found.schools.map((one) => Promise.all(one.typical.slice(0, 6).map((item) => look(item)))));

  async function look(judged) {
    if (known.has(String(judged.item))) return known.get(String(judged.item));
    const page = await get("/v1/items", { q: judged.item, limit: 5 });
    const one = page.items.find((item) => item.item === String(judged.item)) || { item: String(judged.item) };
    known.set(one.item, one);
    return one;
  }

  const title = several
    ? `${found.schools.length} schools of thought among ${found.people} people`
    : found.axes.length
    ? `No separate schools: ${found.people} people differ gradually`
    : `No difference between ${found.people} people that these labels can show`;
  const shares = (one) => (one.by_school ? one.by_school.map((share, i) => `${i + 1}: ${percent(share)}`).join(", ") : `spread ${one.spread.toFixed(2)}`);
  room.replaceChildren(
    el("h2", {}, title),
    several ? el("p", { class: "soft" }, `When people are drawn again, the division comes back with an agreement of ${found.agreement.toFixed(2)} (1 is always).`) : axes(),
    el("div", { class: "grid" },
      el("section", { class: "card", "aria-labelledby": "people" }, el("h3", { id: "people" }, "The people"), peopleMap(map, [])),
      el("div", {},
        list("agreed", "What all agree on", agreed.items, (one) => `yes: ${percent(one.share)}`),
        list("divides", several ? "What divides them (yes, by school)" : "What divides them", divisive.items, shares))),
    several ? el("div", { class: "cards" }, found.schools.map(card)) : null);

  function list(id, heading, items, note) {
    return el("section", { class: "card", "aria-labelledby": id }, el("h3", { id }, heading),
      items.length ? things(items, { note }) : el("p", { class: "soft" }, "The model has kept no labels to tell."));
  }

  function axes() {
    return el("ul", {}, found.axes.slice(0, 3).map((axis) => el("li", {}, `${percent(axis.share)} of it: from “${axis.low}” to “${axis.high}”`)));
  }

  function card(one, index) {
    return el("section", { class: "card school", "aria-labelledby": `school-${one.number}` },
      el("h3", { id: `school-${one.number}`, class: "" }, `School ${one.number}`),
      el("ul", { class: "legend" }, el("li", { class: `cs${index % 6 + 1}` }, el("span", {}, `${one.size} people, stability ${one.stability.toFixed(2)}`))),
      el("p", {}, `It ${one.name}.`),
      el("h4", { class: "small" }, "Typical"), things(shown[index]));
  }
}
