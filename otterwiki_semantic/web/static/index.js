// The administrators' page: polls the state of the index every second while it works, else every ten seconds.
import { fetchPart, localizeTimes } from "./parts.js";

const WORKING_MS = 1000, IDLE_MS = 10000;
const state = document.getElementById("index-state");
const work = document.getElementById("index-work");
const shown = new Map();

/** Reload a part of the page, unless it has the focus. */
async function load(place, isExpected) {
  const { text, content, isOk } = await fetchPart(place.dataset.source);
  if (!isOk || !isExpected(content) || place.contains(document.activeElement)) return false;
  if (shown.get(place) !== text) {
    const open = place.querySelector("details[open]") !== null;
    place.replaceChildren(content);
    localizeTimes(place);
    shown.set(place, text);
    if (open) place.querySelector("details")?.setAttribute("open", "");
  }
  return true;
}

const mark = () => state.querySelector("[data-mark]")?.dataset.mark;
const isWorking = () => state.querySelector("[data-is-working]") !== null;
let seen = mark();

async function look() {
  try {
    if (!document.hidden) {
      await load(state, (part) => part.querySelector("[data-mark]"));
      if (mark() !== seen && (await load(work, (part) => part.querySelector("[data-work]")))) seen = mark();
    }
  } catch {} // the wiki restarts, or the session has ended: keep the page and retry
  again();
}

const again = () => setTimeout(look, isWorking() ? WORKING_MS : IDLE_MS);
again();
