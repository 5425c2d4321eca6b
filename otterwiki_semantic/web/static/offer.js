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

/** Ask which pages may be meant, and show them in a place; how many there are is also said. */
function likelyPages(place) {
  let asked = null;
  let shown = "";
  const list = document.createElement("div");
  const said = Object.assign(document.createElement("p"), { className: "sr-only" });
  said.setAttribute("role", "status");
  place.append(list, said);
  return async (name) => {
    asked?.abort();
    const mine = (asked = new AbortController());
    const source = `${SEARCH}/likely?${new URLSearchParams({ name, ...(here.missing ? { missing: "1" } : {}) })}`;
    let text = "";
    try {
      const reply = name ? await fetch(source, { signal: mine.signal, redirect: "error" }) : null;
      text = reply?.ok ? (await reply.text()).trim() : "";
    } catch {
      if (mine.signal.aborted) return;
    }
    if (mine.signal.aborted || text === shown) return;
    list.innerHTML = shown = text.startsWith("<section") ? text : ""; // else it is another server's page
    const count = list.querySelectorAll("li").length;
    said.textContent = count ? `${count} page${count > 1 ? "s" : ""} may be meant` : "";
  };
}

function offerPages() {
  const begun = document.querySelector('form[action$="/-/create"] input[name="pagename"]');
  const place = begun?.form ?? document.querySelector("#column-main .content");
  if (!place || !(here.missing || begun)) return;
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
