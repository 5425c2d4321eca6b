// The palette: one field for pages, headings, answers and passages, opened from every page of the wiki.
import { asking } from "./asking.js";
import { element, fetchPart } from "./parts.js";

const PASSAGES_MS = 120, SETTLED_MS = 1200, RECENT = 5, PREVIEW = 1500;
const BLOCKS = "h1, h2, h3, h4, h5, h6, p, li, pre, tr, dt, dd";
const SEARCH = new URL("..", import.meta.url).pathname.replace(/\/$/, "");
const here = document.getElementById("semantic-here").dataset;
const dialog = document.getElementById("semantic-palette");
const field = dialog.querySelector("input");
const options = dialog.querySelector("[role=listbox]");
const status = dialog.querySelector("[role=status]");
const chip = dialog.querySelector(".semantic-chip");
const parts = Object.fromEntries([...options.children].map((part) => [part.dataset.part, part]));
const place = dialog.querySelector(".semantic-palette-answer"); // none without a model
const writer = place && asking(place);
const STORE = `semantic-recent:${SEARCH}`;
let active = null; // the option that Enter opens
let isChosen = false; // whether somebody moved to it
let scope = {}; // what the search is narrowed to: a `path` or a `tag`
let waiting = 0, settling = 0; // timers
let answered = ""; // the URL of the model's answer
const asked = {}; // aborts the request of a part

/** Return what this browser remembers: `searches` are texts, `pages` have a title and a URL. */
function recent() {
  try {
    const { searches = [], pages = [] } = JSON.parse(localStorage.getItem(STORE) ?? "{}");
    return { searches: searches.filter((each) => typeof each === "string"), pages: pages.filter((each) => each?.url?.startsWith("/")) };
  } catch {
    return { searches: [], pages: [] };
  }
}

function remember(kind, entry, key) {
  const known = recent();
  known[kind] = [entry, ...known[kind].filter((each) => key(each) !== key(entry))].slice(0, RECENT);
  try {
    localStorage.setItem(STORE, JSON.stringify(known));
  } catch {
    // storage is full or forbidden: nothing is remembered
  }
}

const isNarrowed = () => Object.keys(scope).length > 0;
const query = () => field.value.trim();
const rememberSearch = () => query() && remember("searches", query(), (each) => each);

function made(label, url, attributes = {}) {
  const option = element("a", { className: "semantic-option", role: "option", tabIndex: -1, textContent: label });
  if (url) option.href = url;
  Object.assign(option.dataset, attributes);
  return option;
}

function fill(name, ...content) {
  parts[name].replaceChildren(...content);
  parts[name].hidden = !content.length;
}

function group(label, entries) {
  if (!entries.length) return [];
  const title = element("div", { className: "semantic-group", role: "presentation", textContent: label });
  return [element("div", { role: "group", ariaLabel: label }, title, ...entries)];
}

function showRecent() {
  const { searches, pages } = query() || isNarrowed() ? { searches: [], pages: [] } : recent();
  fill(
    "recent",
    ...group("Recent searches", searches.map((text) => made(text, "", { fill: text }))),
    ...group("Opened here lately", pages.filter(({ url }) => url !== location.pathname).map(({ title, url }) => made(title, url))),
  );
}

function showActions() {
  const text = query();
  if (!text) return fill("actions");
  const named = [...parts.names.querySelectorAll("[data-title]")].some((each) => each.dataset.title.toLowerCase() === text.toLowerCase());
  const name = text.replace(/^\/+|\/+$/g, "").split("/").map(encodeURIComponent).join("/");
  fill(
    "actions",
    made(`All results for “${text}”`, `${SEARCH}?${new URLSearchParams({ q: text, ...scope })}`),
    ...("answers" in here ? [made(`Answer “${text}”`, `${SEARCH}?${new URLSearchParams({ q: text, ...scope })}#answer`, { answer: "" })] : []),
    made(`Exact words: “${text}”`, text.includes("/") ? here.wikiSearch : `${here.wikiSearch}/${encodeURIComponent(text)}`, { exact: "" }),
    ...(here.edit && name && !named ? [made(`Create page “${text}”`, here.edit.replace("NAME", name))] : []),
  );
}

/** Return whether the page has a search field of its own, which the wiki's key "/" goes to. */
const hasOwnField = () => document.querySelector("#search-query:not(.top-search *)") !== null;

const all = () => [...options.querySelectorAll("[role=option]")].filter((each) => each.offsetParent !== null);

function activate(option, { isMoved = false } = {}) {
  for (const each of options.querySelectorAll("[aria-selected]")) each.removeAttribute("aria-selected");
  active = option ?? null;
  isChosen = isMoved;
  if (active) {
    active.setAttribute("aria-selected", "true");
    active.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", active.id);
  } else field.removeAttribute("aria-activedescendant");
  dialog.querySelector("[data-key=ctrl-enter]").textContent = isAsking() ? "answer" : "in a new tab";
  dialog.querySelector("[data-key=tab]").textContent = isToRead() ? "to the answer" : "only this folder or tag";
}

/** Return whether Ctrl+Enter asks for an answer: until somebody moves to an option. */
const isAsking = () => "answers" in here && !isChosen && query() !== "";

/** Return whether Tab goes to the answer of the model. */
const isToRead = () => Boolean(place?.childElementCount) && !isChosen;

/** Have the model answer here, in the place of what answers without one; without a model, open the answer on the search page. */
function answer() {
  const token = document.querySelector("meta[name=csrf-token]");
  if (!writer || !token) return follow(options.querySelector("[data-answer]"));
  const url = `${SEARCH}/answer?${new URLSearchParams({ q: query(), ...scope })}`;
  if (url === answered && writer.isThere()) return;
  answered = url;
  const form = new FormData();
  form.set("csrf_token", token.content);
  writer.ask(url, form);
  rememberSearch();
  settle();
}

/** Number the options, and keep the one that somebody moved to, with its preview; else the first is active. */
function settle() {
  const shown = all();
  for (const [number, option] of shown.entries()) option.id = `semantic-option-${number}`;
  const chosen = isChosen ? active : null;
  const isSame = (each) => each.href === chosen.href && (each.href || each.textContent === chosen.textContent);
  const kept = chosen && (shown.includes(chosen) ? chosen : shown.find(isSame));
  activate(kept || shown[0], { isMoved: Boolean(kept) });
  if (kept && chosen.querySelector(".semantic-whole:not([hidden])")) preview(kept, true);
}

/** Load a part; what is shown stays until then. */
async function load(name, parameters) {
  asked[name]?.abort();
  const mine = (asked[name] = new AbortController());
  const wanted = new URLSearchParams({ part: name, q: query(), ...scope, ...parameters });
  try {
    const part = await fetchPart(`${SEARCH}/palette?${wanted}`, { signal: mine.signal });
    if (mine.signal.aborted) return;
    const content = part.content.querySelector("[data-palette]");
    if (!content) throw new Error("an error page of a proxy");
    const isNamed = name === "passages" && content.dataset.summary && parts.names.querySelector("[role=option]");
    fill(name, ...(isNamed ? [] : content.children)); // what is only near is of no use next to a name that fits
    showActions();
    settle();
    if (name === "passages") status.textContent = isNamed ? "" : content.dataset.summary;
  } catch (error) {
    if (error.name === "AbortError") return;
    status.textContent = "The wiki cannot be reached, or you are logged out.";
  }
}

function search() {
  clearTimeout(waiting);
  clearTimeout(settling);
  writer?.clear();
  showRecent();
  showActions();
  load("names");
  if (!query()) {
    asked.passages?.abort();
    fill("passages");
    status.textContent = "";
    return settle();
  }
  waiting = setTimeout(() => load("passages", { draft: "typing" }), PASSAGES_MS);
  settling = setTimeout(() => load("passages"), SETTLED_MS);
  settle();
}

function narrow(to) {
  scope = to;
  chip.textContent = to.path ?? (to.tag ? `#${to.tag}` : "");
  chip.hidden = !isNarrowed();
  isChosen = false;
  search();
}

/** Search only the folder of an option, or the pages with a tag; return whether that narrows the search. */
function narrowBy({ folder, tag } = {}) {
  if (tag) field.value = "";
  if (tag) narrow({ tag });
  else if (folder && folder !== scope.path) narrow({ path: folder });
  else return false;
  return true;
}

function open(text = "") {
  if (dialog.open) return field.select();
  field.value = text;
  dialog.showModal();
  narrow({});
  field.focus();
}

function follow(option, { isNewTab = false } = {}) {
  if (!option) return;
  if (option.dataset.fill !== undefined) {
    field.value = option.dataset.fill;
    isChosen = false;
    return search();
  }
  if (option.dataset.tag) return narrowBy(option.dataset);
  rememberSearch();
  if (isNewTab) return void window.open(option.href, "_blank", "noopener");
  dialog.close();
  location.assign(option.href);
}

/** Show the whole passage of an option or the beginning of its page, or only its excerpt again. */
function preview(option, isShown) {
  if (isShown && option?.dataset.preview) loadPreview(option);
  const more = option?.querySelector(".semantic-whole");
  if (!more || more.hidden === !isShown) return false;
  more.hidden = !isShown;
  const excerpt = option.querySelector(".semantic-excerpt");
  if (excerpt) excerpt.hidden = isShown;
  option.scrollIntoView({ block: "nearest" });
  return true;
}

/** Give an option the text of its page or section. */
async function loadPreview(option) {
  const more = element("span", { className: "semantic-whole", textContent: "…", hidden: true });
  option.append(more);
  const source = option.dataset.preview;
  delete option.dataset.preview;
  const { content } = await fetchPart(source).catch(() => ({ content: document.createDocumentFragment() }));
  const anchor = new URL(source, location.href).searchParams.get("anchor");
  const heading = anchor && content.getElementById(anchor);
  content.getElementById("frontmatter")?.remove();
  const blocks = [...content.querySelectorAll(BLOCKS)].filter((each) => !each.parentElement?.closest(BLOCKS));
  const own = blocks.slice(heading ? blocks.indexOf(heading) + 1 : 1); // the first is the title
  const texts = own.map((each) => (each.matches("pre") ? each.textContent : each.textContent.replace(/\s+/g, " ")).trim());
  more.textContent = texts.filter(Boolean).join("\n").slice(0, PREVIEW) || "Nothing to show.";
  option.scrollIntoView({ block: "nearest" });
}

dialog.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229) return; // an input method is active
  if (place?.contains(event.target) || (event.key === "Enter" && event.target.matches("button"))) return; // they have keys of their own
  const shown = all();
  const at = shown.indexOf(active);
  const isAtEnd = field.selectionStart === field.value.length && field.selectionEnd === field.value.length;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && !event.altKey) activate(shown[(at + step + shown.length) % shown.length], { isMoved: true });
  else if (event.key === "Enter" && event.shiftKey) follow(options.querySelector("[data-exact]"));
  else if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && isAsking()) answer();
  else if (event.key === "Enter") follow(active, { isNewTab: event.ctrlKey || event.metaKey });
  else if (event.key === "ArrowRight" && isAtEnd && preview(active, true)) isChosen = true;
  else if (event.key === "ArrowLeft" && preview(active, false)) isChosen = true;
  else if (event.key === "Tab" && !event.shiftKey && document.activeElement === field && !isToRead() && narrowBy(active?.dataset)) isChosen = false;
  else if (event.key === "Backspace" && isNarrowed() && !field.selectionEnd) narrow({});
  else if (event.key === "Escape" && preview(active, false)) isChosen = true;
  else return;
  event.preventDefault();
});

field.addEventListener("input", () => {
  isChosen = false;
  search();
});

options.addEventListener("click", (event) => {
  const option = event.target.closest("[role=option]");
  if (!option) return;
  if (event.ctrlKey || event.metaKey || event.shiftKey) return rememberSearch();
  event.preventDefault();
  follow(option);
});

dialog.addEventListener("click", (event) => {
  if (event.target === dialog || event.target.closest("[data-close]")) dialog.close(); // beside it, or its button
});
place?.addEventListener("click", (event) => {
  if (event.target.closest("a") && !event.ctrlKey && !event.metaKey && !event.shiftKey) dialog.close();
});
chip.addEventListener("click", () => {
  narrow({});
  field.focus();
});
dialog.addEventListener("close", () => {
  for (const request of Object.values(asked)) request.abort();
  clearTimeout(waiting);
  clearTimeout(settling);
  writer?.clear();
});

window.addEventListener("keydown", (event) => {
  if (event.isComposing || event.altKey || event.shiftKey) return;
  const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]:not([contenteditable=false])");
  const isCommand = event.ctrlKey || event.metaKey;
  if (isCommand ? event.key.toLowerCase() !== "k" : event.key !== "/" || isTyping || hasOwnField()) return;
  event.preventDefault();
  event.stopPropagation();
  open();
}, true);

const barField = document.querySelector(".top-search input[name=query]");
barField?.addEventListener("pointerdown", (event) => {
  event.preventDefault();
  open(barField.value);
});
barField?.addEventListener("input", () => {
  const text = barField.value;
  barField.value = "";
  open(text);
});
barField?.setAttribute("aria-haspopup", "dialog");

if (here.title) remember("pages", { title: here.title, url: location.pathname }, (each) => each.url);
