// Related pages, loaded after the page itself. There is one placeholder for wide windows and one for narrow ones.
import { copying } from "./copying.js";
import { fetchPart } from "./parts.js";

const places = document.querySelectorAll(".semantic-related[data-source]");
document.querySelector("#column-main .content")?.append(...document.querySelectorAll(".sidebar .semantic-related")); // narrow windows

async function load() {
  const { text, isOk } = await fetchPart(places[0].dataset.source);
  if (!isOk || !text.startsWith("<details")) return; // no related pages, or an error page of a proxy
  for (const place of places) {
    place.innerHTML = text;
    copying(place);
  }
}

const start = () => load().catch(() => {});
if (places.length) window.requestIdleCallback ? requestIdleCallback(start, { timeout: 1000 }) : setTimeout(start);
