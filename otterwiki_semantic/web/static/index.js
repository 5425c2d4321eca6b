// The administrators' page: polls the state of the index every second while it works, else every ten seconds.
import { fetchPart, localizeTimes } from "./parts.js";

const WORKING_MS = 1000, IDLE_MS = 10000;
const state = document.getElementById("index-state");
const work = document.getElementById("index-work");
const shown = new Map();

/** Reload a part of the page, unless a link in it has the focus; only a part with the expected element is no error page. */
async function load(place, expected) {
  const { text, content } = await fetchPart(place.dataset.source);
  const used = place.contains(document.activeElement) && document.activeElement;
  if (!content.querySelector(expected) || (used && !used.matches("summary"))) return false;
  if (shown.get(place) !== text) {
    const folds = () => [...place.querySelectorAll("details")], before = folds();
    place.replaceChildren(content);
    localizeTimes(place);
    shown.set(place, text);
    for (const [at, each] of folds().entries()) each.open = before[at]?.open;
    folds()[before.indexOf(used?.parentElement)]?.firstElementChild.focus();
  }
  return true;
}

const mark = () => state.querySelector("[data-mark]")?.dataset.mark;
let seen = mark();

async function look() {
  try {
    if (!document.hidden) {
      await load(state, "[data-mark]");
      if (mark() !== seen && (await load(work, "[data-work]"))) seen = mark();
    }
  } catch {} // the wiki restarts, or the session has ended: keep the page and retry
  again();
}

const again = () => setTimeout(look, state.querySelector("[data-is-working]") ? WORKING_MS : IDLE_MS);
again();
