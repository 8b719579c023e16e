// The API page: each operation of /v1/openapi.json with its parameters, a form, and the answer.

import { get, key } from "./api.js";
import { capital, el, put } from "./dom.js";

const room = document.getElementById("main");
let described = null, served = null;

const resolve = (schema) => (schema?.$ref ? described.components.schemas[schema.$ref.split("/").at(-1)] : schema) || {};

function typeOf(given) {
  const schema = resolve(given);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  return schema.title && schema.properties ? schema.title : schema.type || "any";
}

// The fields of a body or an answer.
function fields(schema) {
  const { properties, required = [] } = resolve(schema);
  if (!properties) return null;
  return el("table", {}, el("tbody", {}, Object.entries(properties).map(([name, one]) => el("tr", {},
    el("th", { scope: "row" }, name, required.includes(name) ? "" : " (optional)"),
    el("td", {}, typeOf(one)), el("td", { class: "soft" }, one.description || resolve(one).description || "")))));
}

// An example with the attributes, items and answers of the served model.
function inOwnTerms(value, name) {
  if (served && name === "item") return served.items[0];
  if (served && name === "label") return Object.values(served.model.wording)[0].answers.at(-1).label;
  if (served && (name === "items" || name === "only")) return served.items.slice(0, value.length);
  if (served && name === "attribute") return served.model.attributes[0];
  if (Array.isArray(value)) return value.map((one) => inOwnTerms(one));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([inner, one]) => [inner, inOwnTerms(one, inner)]));
}

const exampleOf = (schema) => JSON.stringify(inOwnTerms(resolve(schema).examples?.[0] ?? {}), null, 2);

function operation(path, method, one) {
  const id = `${method}${path}`.replaceAll(/\W+/g, "-");
  const given = (one.parameters || []).map((parameter, index) => {
    const field = el("input", { id: `${id}-${index}`, value: parameter.schema?.default ?? "", required: parameter.required });
    const label = `${parameter.name}${parameter.required ? "" : " (optional)"}: ${typeOf(parameter.schema)}`;
    const about = parameter.description || parameter.schema?.description;
    return { parameter, field, row: el("div", { class: "field" }, el("label", { for: field.id }, label), field, about ? el("p", { class: "soft small" }, about) : null) };
  });
  const schema = one.requestBody?.content?.["application/json"]?.schema;
  const body = schema ? el("textarea", { id: `${id}-body`, rows: 7, spellcheck: "false" }, exampleOf(schema)) : null;
  const done = el("div", { "aria-live": "polite" });
  const answers = Object.entries(one.responses).find(([status]) => status.startsWith("2"))?.[1]?.content?.["application/json"]?.schema;

  async function send(event) {
    event.preventDefault();
    const query = new URLSearchParams(), headers = {};
    let address = path;
    for (const { parameter, field } of given) {
      if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, encodeURIComponent(field.value));
      else if (parameter.in === "query" && field.value !== "") query.set(parameter.name, field.value);
      else if (parameter.in === "header" && field.value !== "") headers[parameter.name] = field.value;
    }
    if (query.size) address += `?${query}`;
    if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
    if (body) headers["Content-Type"] = "application/json";
    const started = performance.now();
    try {
      const answer = await fetch(address, { method: method.toUpperCase(), headers, body: body?.value });
      const text = await answer.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON: shown as it is */ }
      put(done, el("p", { class: "small" }, `${method.toUpperCase()} ${address}: ${answer.status} in ${Math.round(performance.now() - started)} ms`),
        el("pre", { tabindex: 0, "aria-label": "Answer" }, shown.slice(0, 20000)));
    } catch {
      put(done, el("p", { class: "card problem", role: "alert" }, "The service does not answer: check that it is running."));
    }
  }

  return el("details", { class: "card operation", "data-operation": `${method} ${path}` },
    el("summary", {}, el("code", {}, `${method.toUpperCase()} ${path}`), ` ${(one.description || one.summary || "").split("\n")[0]}`),
    el("form", { onsubmit: send },
      one.description?.includes("\n") ? el("p", { class: "soft" }, one.description) : null,
      given.map(({ row }) => row),
      body ? el("div", { class: "field" }, el("label", { for: body.id }, "Body"), body, fields(schema)) : null,
      el("button", {}, "Send")),
    done,
    answers && fields(answers) ? [el("h3", { class: "small" }, "Answer"), fields(answers)] : null);
}

async function start() {
  described = await (await fetch("/v1/openapi.json")).json();
  try {
    const [model, page] = await Promise.all([get("/v1/model"), get("/v1/items", { limit: 2 })]);
    served = { model, items: page.items.map((one) => one.item) };
  } catch { /* without a key, examples are for the demo */ }
  document.getElementById("about").textContent = described.info.description;
  const field = el("input", { id: "secret", type: "password", autocomplete: "off", value: key.get() || "", onchange: () => key.set(field.value.trim()) });
  const tags = new Map();
  for (const [path, methods] of Object.entries(described.paths)) {
    for (const [method, one] of Object.entries(methods)) {
      const tag = one.tags?.[0] ?? "other";
      if (!tags.has(tag)) tags.set(tag, []);
      tags.get(tag).push(operation(path, method, one));
    }
  }
  put(room,
    el("form", { class: "field", onsubmit: (event) => event.preventDefault() }, el("label", { for: "secret" }, "Key or token (if the service needs one)"), field),
    [...tags].map(([tag, operations]) => [el("h2", {}, capital(tag)), operations]));
  room.dataset.ready = "docs";
}

start().catch(() => put(room, el("p", { class: "card problem", role: "alert" }, "The service does not answer: check that it is running.")));
