// Part 3: the schools, and the items that divide them or that all like.

import { get } from "./api.js";
import { el, userMap, percent, put, sentence, things } from "./dom.js";

export async function schools(room, { attribute, wording }) {
  const given = { attribute };
  const [found, map, divisive, agreed] = await Promise.all([
    get("/v1/schools", given), get("/v1/map", given), get("/v1/divisive", { ...given, limit: 8 }),
    get("/v1/agreed", { ...given, limit: 8 }).catch((problem) => {
      if (problem.status === 404) return { items: [] };
      throw problem;
    }),
  ]);
  const several = found.schools.length > 0;
  const title = several
    ? `${found.schools.length} schools of thought among ${found.users} people`
    : found.axes.length
    ? `No separate schools: ${found.users} people differ gradually`
    : `${found.users} people rank alike, as far as these labels show`;
  const shares = (one) => (several && one.by_school ? one.by_school.map((share, i) => `${i + 1}: ${percent(share)}`).join(", ") : `spread ${one.spread.toFixed(2)}`);
  put(room,
    el("h2", {}, title),
    several ? el("p", { class: "soft" }, `Adjusted Rand index with the schools of resampled people: ${found.agreement.toFixed(2)} (1 means the same schools).`) : found.axes.length ? axes() : null,
    el("div", { class: "grid" },
      el("section", { class: "card", "aria-labelledby": "people" }, el("h3", { id: "people" }, "The people"), userMap(map, [])),
      el("div", {},
        list("agreed", `Agreed ${wording.noun}s`, agreed.items, (one) => `${wording.yes}: ${percent(one.share)}`, "The model was saved without labels."),
        list("divides", `Divisive ${wording.noun}s${several ? ` (${wording.yes.toLowerCase()}, by school)` : ""}`, divisive.items, shares, "None, as far as these labels show."))),
    several ? el("div", { class: "cards" }, found.schools.map(card)) : null);

  function list(id, heading, items, note, none) {
    return el("section", { class: "card", "aria-labelledby": id }, el("h3", { id }, heading),
      items.length ? things(items, { note }) : el("p", { class: "soft" }, none));
  }

  function axes() {
    return el("ul", {}, found.axes.slice(0, 3).map((axis) => el("li", {}, `${percent(axis.share)} of the differences: ${axis.low} → ${axis.high}`)));
  }

  function card(one, index) {
    return el("section", { class: "card school", "aria-labelledby": `school-${one.number}` },
      el("h3", { id: `school-${one.number}`, class: "" }, `School ${one.number}`),
      el("ul", { class: "legend" }, el("li", { class: `cs${index % 6 + 1}` }, el("span", {}, `${one.size} people, stability ${one.stability.toFixed(2)}`))),
      el("p", {}, sentence(`A member ${one.name}`)),
      el("h4", { class: "small" }, "Typical"), things(one.typical));
  }
}
