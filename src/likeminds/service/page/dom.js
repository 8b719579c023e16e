// Elements, drawings and words that several parts share. Text is inserted as text, never as HTML.

import { picture } from "./api.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(node, given, inner) {
  for (const [name, value] of Object.entries(given || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...parts(inner));
  return node;
}

const parts = (given) => given.flat(Infinity).filter((part) => part !== null && part !== undefined && part !== false);
export const put = (node, ...inner) => node.replaceChildren(...parts(inner));

export const el = (name, given, ...inner) => fill(document.createElement(name), given, inner);
export const svg = (name, given, ...inner) => fill(document.createElementNS(SVG, name), given, inner);

export const capital = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;
export const say = (text) => { document.getElementById("said").textContent = text; };
export const percent = (share) => `${Math.round(100 * share)}\u00a0%`;
export const called = (one) => one.text || one.item;
export const briefly = (one) => (called(one).length > 80 ? `${called(one).slice(0, 77)}…` : called(one));
export const number = (value, digits = 2) => (value.toFixed(digits) === `-${(0).toFixed(digits)}` ? 0 : value).toFixed(digits);
export const words = (name) => name.replace(/^learned_(\d+)$/, "learned factor $1").replace(/^text: /, "").replaceAll("_", " ");
export const isNamed = (name) => !/\d$/.test(name);
export const sentence = (text) => (/[.!?…]["”’)]*$/.test(text) ? text : `${text}.`);

// The expected answer: a grade, or the probability of a yes.
export function expectation(one, wording) {
  if (one.expected === null || one.expected === undefined) return null;
  const worded = typeof wording.answers[0].label === "string";
  if (worded) return `${wording.answers[Math.round(one.expected)].text} expected`;
  return wording.graded ? `${one.expected.toFixed(1)} expected` : `${wording.yes}: ${percent(one.expected)}`;
}

export function thumb(one, size = "thumb") {
  return one.picture ? el("img", { class: size, src: picture(one.item), alt: "", loading: "lazy" }) : null;
}

// A row of items; with `choose`, they are buttons.
export function things(items, { note, choose, chosen } = {}) {
  const kind = items.some((one) => one.picture) ? "" : items.some((one) => called(one).length > 60) ? " texts" : " names";
  return el("ul", { class: `things${kind}` }, items.map((one) => {
    const inner = [thumb(one), el("span", { class: "clamped" }, called(one)), note ? el("div", { class: "soft" }, note(one)) : null];
    if (!choose) return el("li", {}, ...inner);
    const pressed = chosen === undefined ? null : String(chosen === one.item);
    return el("li", {}, el("button", { type: "button", "aria-pressed": pressed, "data-item": one.item, onclick: () => choose(one) }, ...inner));
  }));
}

// Shares of the three levels as one bar.
export function levelBar(shares, whose) {
  const names = ["consensus", "group", "personal"];
  const said = names.map((name) => `${name} ${percent(shares[name])}`).join(", ");
  let left = 0;
  const parts = names.map((name) => {
    const width = 300 * shares[name];
    const part = svg("rect", { class: name, x: left, y: 0, width, height: 22 });
    left += width;
    return part;
  });
  return el("div", {},
    svg("svg", { viewBox: "0 0 300 22", role: "img", "aria-label": `${whose}: ${said}` }, parts),
    el("ul", { class: "legend" }, names.map((name) => el("li", { class: `c-${name}` }, el("span", {}, `${name} ${percent(shares[name])}`)))));
}

// The map of people, each a dot in the colour of their school, some with a name: on a plane, or
// stacked along the only axis.
export function userMap(map, marked) {
  if (!map.axes.length) return el("p", { class: "soft" }, `People rank alike, as far as these labels show.${map.thresholds_differ ? " They differ in how readily they say yes." : ""}`);
  const line = map.axes.length === 1, several = map.names.length > 1;
  const all = line ? [...map.points, ...marked.map((one) => [one.at[0], 0])] : [...map.points, ...marked.map((one) => one.at)];
  const range = (axis) => {
    const values = all.map((point) => point[axis]);
    const low = Math.min(...values), high = Math.max(...values);
    return [low, high - low || 1];
  };
  const [x0, width] = range(0), [y0, height] = range(1);
  const step = line ? Math.min(10, 180 / height) : 208 / height, floor = 16 + step * height;
  const place = ([x, y]) => [16 + 328 * (x - x0) / width, floor - step * (y - y0)];
  const dots = map.points.map((point, index) => {
    const [cx, cy] = place(point);
    return svg("circle", { class: `point s${((map.schools[index] || 1) - 1) % 6 + 1}`, cx, cy, r: 4 });
  });
  const stars = marked.map(({ name, at }, index) => {
    const [x, y] = line ? [place([at[0], 0])[0], floor + 20] : place(at);
    const end = x > 260;
    return svg("g", {},
      line ? svg("line", { class: "track", x1: x, x2: x, y1: floor, y2: y }) : null,
      svg("path", { class: "you", "data-x": at[0], "data-y": at[1], d: `M${x} ${y - 9}l3 6 6.6.8-4.8 4.5 1.3 6.5-6.1-3.2-6.1 3.2 1.3-6.5-4.8-4.5 6.6-.8z` }),
      svg("text", { x: end ? x - 12 : x + 12, y: y + 4 + 14 * index, "text-anchor": end ? "end" : "start", "font-weight": 600 }, name));
  });
  const label = `Map of ${map.points.length} people${several ? ` in ${map.names.length} schools` : ""}. People near each other rank alike.`;
  const ends = [["←", "→"], ["↓", "↑"]];
  return el("div", {},
    svg("svg", { viewBox: `0 0 360 ${floor + (line && marked.length ? 24 + 14 * marked.length : 16)}`, role: "img", "aria-label": label }, dots, stars),
    several ? el("ul", { class: "legend" }, map.names.map((_, index) => el("li", { class: `cs${index % 6 + 1}` }, el("span", {}, `School ${index + 1}`)))) : null,
    map.axes.map((axis, index) => el("div", { class: "ends soft small" },
      el("span", {}, `${ends[index][0]} ${axis.low}`), el("span", {}, `${axis.high}\u00a0${ends[index][1]}`))));
}

// The positive and negative parts of a score, as bars around a middle line.
export function signedBars(rows, label) {
  const most = Math.max(...rows.map((row) => Math.abs(row.value)), 1e-9);
  const height = 26 * rows.length;
  const bars = rows.map((row, index) => {
    const length = 112 * Math.abs(row.value) / most;
    const y = 26 * index;
    return svg("g", {},
      svg("text", { x: 146, y: y + 16, "text-anchor": "end" }, row.name.length > 26 ? `${row.name.slice(0, 25)}…` : row.name),
      svg("rect", { class: row.kind, x: row.value < 0 ? 268 - length : 268, y: y + 4, width: length, height: 16 }),
      svg("text", { x: row.value < 0 ? 272 : 264, y: y + 16, "text-anchor": row.value < 0 ? "start" : "end" }, number(row.value)));
  });
  return svg("svg", { viewBox: `0 0 400 ${height}`, role: "img", "aria-label": `${label}: ${rows.map((row) => `${row.name} ${number(row.value)}`).join(", ")}` },
    svg("line", { class: "track", x1: 268, x2: 268, y1: 0, y2: height }), bars);
}
