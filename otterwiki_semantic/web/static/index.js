// The administrators' page: how the index is, asked for again every second while it works, and every ten seconds else.
const WORKING_MS = 1000, RESTING_MS = 10000;
const state = document.getElementById("index-state");
const work = document.getElementById("index-work");

async function load(place) {
  const reply = await fetch(place.dataset.source, { redirect: "error" });
  const text = await reply.text();
  const open = place.querySelector("details[open]") !== null;
  if (place.textRendered !== text) place.innerHTML = place.textRendered = text;
  if (open) place.querySelector("details")?.setAttribute("open", "");
}

const mark = () => state.firstElementChild?.dataset.mark;
const isWorking = () => state.firstElementChild?.hasAttribute("data-is-working");

async function look() {
  const before = mark();
  try {
    if (!document.hidden) await load(state);
    if (mark() !== before) await load(work);
  } catch {
    // the wiki restarts, or the session has ended: the page stays as it is, and asks again
  }
  setTimeout(look, isWorking() ? WORKING_MS : RESTING_MS);
}

setTimeout(look, isWorking() ? WORKING_MS : RESTING_MS);
