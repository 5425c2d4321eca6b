// Offers on the wiki's own pages: search by meaning next to its search, and existing pages if a page is missing or being created.
import { SEARCH, element, fetchPart, localizeTimes } from "./parts.js";

const here = document.getElementById("semantic-here")?.dataset ?? {};
const TYPING_MS = 250;

function offer(field, place) {
  const link = element("a", { className: "semantic-offer", textContent: "Search by meaning instead" });
  const follow = () => (link.href = field.value.trim() ? `${SEARCH}?${new URLSearchParams({ q: field.value.trim() })}` : SEARCH);
  field.addEventListener("input", follow);
  follow();
  place.append(link);
}

function offerSearch() {
  const field = document.querySelector('form[action$="/-/search"] input[name="query"]');
  const isInPalette = field?.closest(".top-search") && document.getElementById("semantic-palette");
  if (field && !isInPalette) offer(field, field.closest(".top-search") ?? field.form.querySelector("input[type=submit]").parentElement);
}

/** Load the pages that may be meant, show them in a place, and announce their number. */
function likelyPages(place) {
  let asked = null;
  let shown = "";
  const list = element("div");
  const said = element("p", { className: "sr-only", role: "status" });
  place.append(list, said);
  return async (name) => {
    asked?.abort();
    const mine = (asked = new AbortController());
    const source = `${SEARCH}/likely?${new URLSearchParams({ name, ...(here.missing ? { missing: "1" } : {}) })}`;
    const part = name ? await fetchPart(source, { signal: mine.signal }).catch(() => null) : null;
    const text = part?.isOk && part.text.startsWith("<section") ? part.text : ""; // else an error page of a proxy
    if (mine.signal.aborted || text === shown) return;
    list.innerHTML = shown = text;
    const count = list.querySelectorAll("li").length;
    said.textContent = count ? `${count} similar page${count > 1 ? "s" : ""}` : "";
  };
}

function offerPages() {
  const begun = document.querySelector('form[action$="/-/create"] input[name="pagename"]');
  const place = begun?.form.parentElement ?? document.querySelector("#column-main .content");
  if (!place || !(here.missing || begun)) return;
  const ask = likelyPages(place);
  if (here.missing) ask(here.missing);
  if (!begun) return;
  let waiting = 0;
  begun.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => ask(begun.value.trim()), TYPING_MS);
  });
  if (begun.value.trim()) ask(begun.value.trim());
}

offerSearch();
offerPages();
for (const page of document.querySelectorAll("#column-main .semantic")) localizeTimes(page);
