// Offers on the wiki's own pages: search by meaning next to its search, and existing pages if a page is missing or being created.
import { SEARCH, byId, delayed, element, fetchPart, latest, localizeTimes } from "./parts.js";

const here = byId("here")?.dataset ?? {};
const TYPING_MS = 250;

function offerSearch() {
  const field = document.querySelector('form[action$="/-/search"] input[name="query"]');
  const bar = field?.closest(".top-search");
  if (!field || (bar && byId("palette"))) return;
  const link = element("a", { className: "semantic-offer", textContent: "Search by meaning instead" });
  const follow = () => (link.href = field.value.trim() ? `${SEARCH}?${new URLSearchParams({ q: field.value.trim() })}` : SEARCH);
  field.addEventListener("input", follow);
  follow();
  (bar ?? field.form.querySelector("input[type=submit]").parentElement).append(link);
}

/** Return what shows the pages that a name may mean in a place, and announces their number. */
function likelyPages(place) {
  let shown = "";
  const next = latest(), list = element("div"), said = element("p", { className: "sr-only", role: "status" });
  place.append(list, said);
  return async (name) => {
    const signal = next(), source = `${SEARCH}/likely?${new URLSearchParams({ name, ...(here.missing && { missing: "1" }) })}`;
    const part = name ? await fetchPart(source, { signal }).catch(() => null) : null;
    const text = part?.isOk && part.text.startsWith("<section") ? part.text : ""; // else an error page of a proxy
    if (signal.aborted || text === shown) return;
    list.innerHTML = shown = text;
    const count = list.querySelectorAll("li").length;
    said.textContent = count ? `${count} related page${count > 1 ? "s" : ""}` : "";
  };
}

function offerPages() {
  const begun = document.querySelector('form[action$="/-/create"] input[name="pagename"]');
  const place = begun ? element("div", { className: "w-full mt-20" }) : document.querySelector("#column-main .content");
  if (!place || !(here.missing || begun)) return;
  begun?.form.append(place); // below the button, which stays where it is
  const ask = likelyPages(place);
  begun?.addEventListener("input", delayed(() => ask(begun.value.trim()), TYPING_MS));
  ask(begun?.value.trim() || here.missing);
}

offerSearch();
offerPages();
for (const page of document.querySelectorAll("#column-main .semantic")) localizeTimes(page);
