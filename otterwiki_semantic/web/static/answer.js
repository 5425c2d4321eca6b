// The answer above the results of the search page.
import { asking } from "./asking.js";
import { byId } from "./parts.js";

const SHOWN_ONLY = ["mode", "sort", "why", "corrections"]; // what changes the results, and not the answer
const form = byId("form");
const field = form.elements.q;
const controls = byId("controls");
const results = byId("results");
const place = byId("answer");
const writer = asking(place);
let answered = place.childElementCount ? subject() : null; // what the answer is about
let wanted = null; // what to answer as soon as its results are there

/** Return the question of the form and its filters, as a text. */
function subject() {
  const given = [...new FormData(form)].map(([name, value]) => [name, value.trim()]);
  return new URLSearchParams(given.filter(([name, value]) => value && !SHOWN_ONLY.includes(name))).toString();
}

const button = () => controls.querySelector(".semantic-answer-form");

function answer() {
  answered = subject();
  writer.ask(button().action, new FormData(button()));
}

/** Answer what was asked for as soon as its results are there; take away an answer to something else. */
function follow() {
  if (answered !== null && subject() !== answered) {
    writer.clear();
    answered = null;
  }
  if (wanted !== subject()) wanted = null;
  if (wanted === null || results.hasAttribute("aria-busy")) return;
  wanted = null;
  if (button()) answer();
}

controls.addEventListener("submit", (event) => {
  if (!event.target.matches(".semantic-answer-form")) return;
  event.preventDefault();
  answer();
  place.focus({ preventScroll: true }); // the button goes
});

field.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.altKey || event.isComposing) return;
  event.preventDefault();
  if (answered === subject() && writer.isThere()) return;
  form.requestSubmit();
  wanted = subject();
  follow();
});

field.addEventListener("input", follow);
new MutationObserver(follow).observe(results, { attributes: true, attributeFilter: ["aria-busy"] });

if (location.hash === "#answer" && document.referrer.startsWith(`${location.origin}/`)) { // another site must not make the model work
  wanted = subject();
  follow();
}
