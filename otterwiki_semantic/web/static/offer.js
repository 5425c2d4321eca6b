// What is offered on the wiki's own pages: search by meaning beside its search, and existing pages where one is missing or begun.
const SEARCH = new URL("..", import.meta.url).pathname.replace(/\/$/, "");
const here = document.getElementById("semantic-here")?.dataset ?? {};
const SLOWLY_MS = 250;

function offer(field, place) {
  const link = Object.assign(document.createElement("a"), { className: "semantic-offer", textContent: "Search by meaning instead" });
  const follow = () => (link.href = field.value.trim() ? `${SEARCH}?${new URLSearchParams({ q: field.value.trim() })}` : SEARCH);
  field.addEventListener("input", follow);
  follow();
  place.append(link);
}

function offerSearch() {
  const field = document.querySelector('form[action$="/-/search"] input[name="query"]');
  if (field) offer(field, field.closest(".top-search") ?? field.form.querySelector("input[type=submit]").parentElement);
}

function likelyPages(place) {
  let asked = null;
  return async (name) => {
    asked?.abort();
    asked = new AbortController();
    const source = `${SEARCH}/likely?${new URLSearchParams({ name, ...(here.missing ? { missing: "1" } : {}) })}`;
    try {
      const reply = name ? await fetch(source, { signal: asked.signal, redirect: "error" }) : null;
      place.innerHTML = reply?.ok ? await reply.text() : "";
    } catch (error) {
      if (error.name !== "AbortError") place.replaceChildren();
    }
  };
}

function offerPages() {
  const begun = document.querySelector('form[action$="/-/create"] input[name="pagename"]');
  if (!here.missing && !begun) return;
  const place = document.createElement("div");
  place.setAttribute("aria-live", "polite");
  (begun?.form ?? document.querySelector("#column-main .content")).append(place);
  const ask = likelyPages(place);
  if (here.missing) ask(here.missing);
  if (!begun) return;
  let waiting = 0;
  begun.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => ask(begun.value.trim()), SLOWLY_MS);
  });
  if (begun.value.trim()) ask(begun.value.trim());
}

offerSearch();
offerPages();
