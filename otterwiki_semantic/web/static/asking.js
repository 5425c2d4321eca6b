// An answer to a question, in a place of a page: the wiki renders it anew with each sentence that is written.
import { copying } from "./copying.js";
import { element } from "./parts.js";

const FIRST_WAIT = 100, LONGEST_WAIT = 400; // milliseconds

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const quiet = (textContent) => element("p", { className: "semantic-quiet", textContent });

/** Return what asks questions and shows their answers in `place`. */
export function asking(place) {
  let asked; // the answer that is being written: its URL and form data, its id, its last part, and what ends it

  /** Show the answer that a URL gives, and fetch more of it until it is whole; `form` has the wiki's token. */
  async function ask(url, form) {
    leave();
    const mine = (asked = { url: `${url}&part=1`, form, ending: new AbortController() });
    const { signal } = mine.ending;
    place.replaceChildren(quiet("Searching…"));
    try {
      for (let wait = FIRST_WAIT; mine.id !== null; wait = Math.min(2 * wait, LONGEST_WAIT)) {
        if (mine.id) await pause(wait);
        const more = mine.id ? `&writing=${mine.id}` : "";
        const reply = await fetch(mine.url + more, { method: "POST", body: form, signal, redirect: "error" });
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
    if (asked.id) navigator.sendBeacon(`${asked.url}&left=${asked.id}`, asked.form);
    asked = null;
  }

  function clear() {
    leave();
    place.replaceChildren();
  }

  const isThere = () => asked || place.querySelector(".semantic-answer");

  /** Say why no more comes, below the sentences that came. */
  function fail(reason) {
    const written = place.querySelector(".semantic-answer");
    const isBegun = written?.querySelector(":scope > :not([role=status])");
    const lost = isBegun ? "The answer is incomplete: the connection was lost." : "No answer: the wiki cannot be reached, or you are logged out.";
    const said = quiet(reason ?? lost);
    said.role = "status";
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

  addEventListener("pagehide", () => {
    if (asked) fail("The answer is incomplete: you left the page.");
    leave();
  });
  copying(place);
  return { ask, clear, isThere };
}
