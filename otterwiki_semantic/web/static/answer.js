// The answer above the results: the wiki renders it anew with each sentence that is written.
import { copying } from "./copying.js";

const SHOWN_ONLY = ["mode", "sort", "why", "corrections"]; // what changes the results, and not the answer
const form = document.getElementById("semantic-form");
const field = document.getElementById("search-query");
const results = document.getElementById("semantic-results");
const place = document.getElementById("semantic-answer");
let asked = null; // aborts the answer that is being written
let answered = place.childElementCount ? subject() : null; // what the answer is about
let wanted = null; // what to answer as soon as its results are there
let isWriting = false;

/** Return the question of the form and its filters, as a text. */
function subject() {
  const given = new FormData(form);
  for (const name of SHOWN_ONLY) given.delete(name);
  given.set("q", field.value.trim());
  return new URLSearchParams(given).toString();
}

const button = () => results.querySelector(".semantic-answer-form");

/** Show the answer to what is searched for. */
async function answer() {
  asked?.abort();
  const mine = (asked = new AbortController());
  answered = subject();
  isWriting = true;
  place.replaceChildren(quiet("Reading …"));
  try {
    const reply = await fetch(`${button().action}&part=1`, { method: "POST", body: new FormData(button()), signal: mine.signal, redirect: "error" });
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = "";
    for (let part = await reader.read(); !part.done && !mine.signal.aborted; part = await reader.read()) {
      const events = (waiting + part.value).split("\n\n");
      waiting = events.pop();
      const last = events.filter((each) => each.startsWith("data: ")).pop();
      if (last) show(JSON.parse(last.slice(6)));
    }
    if (!place.querySelector(".semantic-answer:not([aria-busy])")) throw new Error("cut, or an error page of a proxy");
  } catch {
    if (!mine.signal.aborted) fail();
  } finally {
    if (asked === mine) isWriting = false;
  }
}

function quiet(textContent) {
  return Object.assign(document.createElement("p"), { className: "semantic-quiet", textContent });
}

/** Say that the connection was lost, below the sentences that came. */
function fail() {
  const written = place.querySelector(".semantic-answer");
  const isBegun = Boolean(written?.querySelector(":scope > :not([role=status])"));
  const said = quiet(isBegun ? "The rest did not come: the connection was lost." : "No answer came: the wiki cannot be reached, or you are logged out.");
  said.setAttribute("role", "status");
  if (!isBegun) return place.replaceChildren(said);
  written.removeAttribute("aria-busy");
  written.querySelector(":scope > [role=status]")?.replaceWith(said);
}

function show(html) {
  const isRead = place.contains(document.activeElement);
  place.innerHTML = html;
  if (isRead) place.focus({ preventScroll: true });
  copying(place);
}

/** Answer what was asked for as soon as its results are there; take away an answer to something else. */
function follow() {
  if (answered !== null && subject() !== answered) {
    asked?.abort();
    place.replaceChildren();
    answered = null;
  }
  if (wanted !== subject()) wanted = null;
  if (wanted === null || results.hasAttribute("aria-busy")) return;
  wanted = null;
  if (button()) answer();
}

results.addEventListener("submit", (event) => {
  if (!event.target.matches(".semantic-answer-form")) return;
  event.preventDefault();
  answer();
});

field.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing || field.hasAttribute("aria-activedescendant")) return;
  event.preventDefault();
  if (answered === subject() && (isWriting || place.querySelector(".semantic-answer"))) return; // it is there
  form.requestSubmit();
  wanted = subject();
  follow();
});

field.addEventListener("input", follow);
new MutationObserver(follow).observe(results, { attributes: true, attributeFilter: ["aria-busy"] });

copying(place);
const isFromHere = document.referrer.startsWith(`${location.origin}/`); // another site must not make the model work
if (location.hash === "#answer" && isFromHere) {
  wanted = subject();
  follow();
}
