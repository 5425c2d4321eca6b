// Related pages, loaded once the page itself is there. The sidebar has a place for wide windows and one for narrow ones.
import { copying } from "./copying.js";

const places = document.querySelectorAll(".semantic-related[data-source]");

async function load() {
  const reply = await fetch(places[0].dataset.source, { redirect: "error" });
  const text = await reply.text();
  if (!reply.ok || !text.trim().startsWith("<details")) return; // nothing is near, or another server's words
  for (const place of places) {
    place.innerHTML = text;
    copying(place);
  }
}

if (places.length) (window.requestIdleCallback ?? setTimeout)(() => load().catch(() => {}));
