// The answer above the results: the wiki renders it anew with each sentence that is written.
import { copying } from "./copying.js";

const form = document.getElementById("semantic-form");
const field = document.getElementById("search-query");
const results = document.getElementById("semantic-results");
const place = document.getElementById("semantic-answer");
let asked = null; // aborts the answer that is being written
let answered = ""; // the question of the answer that is shown

/** Show the answer to what is searched for. */
async function answer(button) {
  asked?.abort();
  const mine = (asked = new AbortController());
  answered = field.value.trim();
  place.replaceChildren(Object.assign(document.createElement("p"), { className: "semantic-quiet", textContent: "Reading …" }));
  try {
    const reply = await fetch(`${button.action}&part=1`, { method: "POST", body: new FormData(button), signal: mine.signal, redirect: "error" });
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const events = (waiting + part.value).split("\n\n");
      waiting = events.pop();
      const last = events.filter((each) => each.startsWith("data: ")).pop();
      if (last) show(JSON.parse(last.slice(6)));
    }
    if (!place.querySelector(".semantic-answer")) throw new Error("an error page of a proxy");
    place.querySelector("[aria-busy]")?.removeAttribute("aria-busy");
  } catch (error) {
    if (error.name !== "AbortError") place.textContent = "No answer came: the wiki cannot be reached, or you are logged out.";
  }
}

function show(html) {
  const isRead = place.contains(document.activeElement);
  place.innerHTML = html;
  if (isRead) place.focus({ preventScroll: true });
  copying(place);
}

results.addEventListener("submit", (event) => {
  if (!event.target.matches(".semantic-answer-form")) return;
  event.preventDefault();
  answer(event.target);
});

/** Ask as soon as the results of what was typed are there. */
function askSoon() {
  const ready = () => results.querySelector(".semantic-answer-form");
  if (!results.hasAttribute("aria-busy") && ready()) return answer(ready());
  const watching = new MutationObserver(() => {
    if (results.hasAttribute("aria-busy")) return;
    watching.disconnect();
    if (ready()) answer(ready());
  });
  watching.observe(results, { attributes: true, attributeFilter: ["aria-busy"] });
}

field.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing || field.hasAttribute("aria-activedescendant")) return;
  event.preventDefault();
  form.requestSubmit();
  askSoon();
});

field.addEventListener("input", () => {
  if (field.value.trim() === answered) return;
  asked?.abort();
  place.replaceChildren();
  answered = "";
});

copying(place);
const isFromHere = document.referrer.startsWith(`${location.origin}/`); // another site must not make the model work
if (location.hash === "#answer" && isFromHere) askSoon();
