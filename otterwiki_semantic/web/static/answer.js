// The answer above the results: the wiki renders it anew with each sentence that is written.
import { copying } from "./copying.js";

const SHOWN_ONLY = ["mode", "sort", "why", "corrections"]; // what changes the results, and not the answer
const FIRST_WAIT = 100, LONGEST_WAIT = 400; // milliseconds
const form = document.getElementById("semantic-form");
const field = document.getElementById("search-query");
const results = document.getElementById("semantic-results");
const place = document.getElementById("semantic-answer");
let asked = null; // the answer that is being written: its form, its id, its last part, and what ends it
let answered = place.childElementCount ? subject() : null; // what the answer is about
let wanted = null; // what to answer as soon as its results are there

/** Return the question of the form and its filters, as a text. */
function subject() {
  const given = new FormData(form);
  for (const name of SHOWN_ONLY) given.delete(name);
  given.set("q", field.value.trim());
  return new URLSearchParams(given).toString();
}

const button = () => results.querySelector(".semantic-answer-form");
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Show the answer to what is searched for, and fetch more of it until it is whole. */
async function answer() {
  leave();
  const mine = (asked = { form: button(), ending: new AbortController() });
  const { signal } = mine.ending;
  answered = subject();
  place.replaceChildren(quiet("Reading …"));
  try {
    for (let wait = FIRST_WAIT; mine.id !== null; wait = Math.min(2 * wait, LONGEST_WAIT)) {
      if (mine.id) await pause(wait);
      const more = mine.id ? `&writing=${mine.id}` : "";
      const reply = await fetch(`${mine.form.action}&part=1${more}`, { method: "POST", body: new FormData(mine.form), signal, redirect: "error" });
      const said = await reply.json();
      if (signal.aborted) return;
      if (said.message) return fail(said.message);
      mine.id = said.id;
      if (said.part !== mine.part) show((mine.part = said.part));
    }
  } catch {
    if (!signal.aborted) fail();
  } finally {
    if (asked === mine) asked = null;
  }
}

/** End the answer that is being written. */
function leave() {
  if (!asked) return;
  asked.ending.abort();
  if (asked.id) navigator.sendBeacon(`${asked.form.action}&part=1&left=${asked.id}`, new FormData(asked.form));
  asked = null;
}

function quiet(textContent) {
  return Object.assign(document.createElement("p"), { className: "semantic-quiet", textContent });
}

/** Say why no more comes, below the sentences that came. */
function fail(reason) {
  const written = place.querySelector(".semantic-answer");
  const isBegun = Boolean(written?.querySelector(":scope > :not([role=status])"));
  const lost = isBegun ? "The rest did not come: the connection was lost." : "No answer came: the wiki cannot be reached, or you are logged out.";
  const said = quiet(reason ?? lost);
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
    leave();
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
  if (answered === subject() && (asked || place.querySelector(".semantic-answer"))) return; // it is there
  form.requestSubmit();
  wanted = subject();
  follow();
});

field.addEventListener("input", follow);
addEventListener("pagehide", () => {
  if (asked) fail("The rest was not written: the page was left.");
  leave();
});
new MutationObserver(follow).observe(results, { attributes: true, attributeFilter: ["aria-busy"] });

copying(place);
const isFromHere = document.referrer.startsWith(`${location.origin}/`); // another site must not make the model work
if (location.hash === "#answer" && isFromHere) {
  wanted = subject();
  follow();
}
