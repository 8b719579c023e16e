// The page: it shows one part, for one attribute.

import { get, key } from "./api.js";
import { compare } from "./compare.js";
import { capital, el, put, words } from "./dom.js";
import { items } from "./items.js";
import { schools } from "./schools.js";
import { teach } from "./teach.js";

const PARTS = { teach, compare, schools, items };
const room = document.getElementById("main");
const picker = document.getElementById("attribute");
let model = null, turn = 0;

async function show(focus) {
  const name = location.hash.slice(1) in PARTS ? location.hash.slice(1) : "teach";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.part === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const mine = (turn += 1);
  const place = el("div", { "data-part": name });
  room.setAttribute("aria-busy", "true");
  try {
    const attribute = model.attributes.length ? picker.value : null;
    const wording = model.wording[attribute ?? ""];
    dress(wording);
    const ready = PARTS[name](place, { attribute, model, wording });
    if (mine === turn) room.replaceChildren(place);
    await ready;
  } catch (problem) {
    put(place, el("p", { class: "card problem", role: "alert" }, problem.message));
  }
  if (mine === turn) {
    room.removeAttribute("aria-busy");
    room.dataset.ready = name;
    if (focus) {
      room.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
  }
}

function dress({ noun }) {
  const names = { teach: noun === "statement" ? "Vote" : "Answer", items: `${capital(noun)}s` };
  for (const [part, text] of Object.entries(names)) document.querySelector(`nav a[data-part=${part}]`).textContent = text;
  document.title = `${model.title}: ${names.teach.toLowerCase()}`;
}

function askForKey() {
  const field = el("input", { id: "key", type: "password", autocomplete: "off", required: true });
  put(room, el("form", {
    class: "card",
    onsubmit: (event) => { event.preventDefault(); key.set(field.value.trim()); start(); },
  }, el("h2", {}, "This service needs a key"), el("label", {}, "Key ", field), " ", el("button", {}, "Continue")));
  room.dataset.ready = "key";
}

async function start() {
  try {
    model = await get("/v1/model");
  } catch (problem) {
    if (problem.status === 401) askForKey();
    else put(room, el("p", { class: "card problem", role: "alert" }, problem.message));
    return;
  }
  document.getElementById("title").textContent = model.title;
  if (model.attributes.length) {
    put(picker, model.attributes.map((name) => el("option", { value: name }, words(name))));
    const last = sessionStorage.getItem("likeminds-attribute");
    if (model.attributes.includes(last)) picker.value = last;
    document.getElementById("attribute-box").hidden = false;
  }
  await show(false);
}

picker.addEventListener("change", () => { sessionStorage.setItem("likeminds-attribute", picker.value); show(false); });
window.addEventListener("hashchange", () => { if (location.hash === "#main") room.focus(); else show(true); });
start();
