// The palette: one field for pages, headings, answers, passages and commands, opened from every page of the wiki.
import { asking } from "./asking.js";
import { copyText } from "./copying.js";
import { SEARCH, byId, delayed, element, failure, fetchPart, isPlainClick, latest } from "./parts.js";
import { preview, previewSoon } from "./preview.js";

const PASSAGES_MS = 120, SETTLED_MS = 1200, RECENT = 5;
const here = byId("here").dataset;
const dialog = byId("palette");
const find = (selector) => dialog.querySelector(selector);
const field = find("input");
const options = find("[role=listbox]");
const status = find("[role=status]");
const chip = find(".semantic-chip");
const pane = find(".semantic-preview");
const parts = Object.fromEntries([...options.children].map((part) => [part.dataset.part, part]));
const place = find(".semantic-palette-answer"); // none without a model
const [blank, ...rows] = find("template").content.children; // commands, and actions on a text
const writer = place && asking(place);
const STORE = `semantic-recent:${SEARCH}`;
let active = null; // the option that Enter opens
let isChosen = false; // whether somebody moved to it
let isPreviewing = false;
let scope = {}; // what the search is narrowed to: a `path` or a `tag`
let answered = ""; // the URL of the model's answer
const next = { names: latest(), passages: latest() };
const begin = delayed(() => load("passages", { draft: "typing" }), PASSAGES_MS), finish = delayed(() => load("passages"), SETTLED_MS);

/** Return what this browser remembers: `searches` are texts, `pages` have a title, a URL and a path. */
function recent() {
  let known;
  try {
    known = JSON.parse(localStorage.getItem(STORE));
  } catch {} // storage is forbidden, or its content is not ours
  const listed = (kind, isValid) => (known?.[kind]?.filter?.(isValid) ?? []);
  return { searches: listed("searches", (each) => typeof each === "string"), pages: listed("pages", (each) => each?.url?.startsWith("/")) };
}

function remember(kind, entry) {
  const known = recent(), key = (each) => each.url ?? each;
  known[kind] = [entry, ...known[kind].filter((each) => key(each) !== key(entry))].slice(0, RECENT);
  try {
    localStorage.setItem(STORE, JSON.stringify(known));
  } catch {} // storage is full or forbidden: nothing is remembered
}

const remedy = () => status.querySelector(".btn"); // of a failure
const action = (name) => options.querySelector(`[data-action=${name}]`);
const isNarrowed = () => !chip.hidden;
const query = () => field.value.trim();
const asQuery = (parameters) => new URLSearchParams({ q: query(), ...scope, ...parameters });
const rememberSearch = () => query() && remember("searches", query());

function made(icon, label, { url, trail, ...attributes }) {
  const option = blank.cloneNode(true), [image, title, place] = option.children;
  image.className = icon;
  title.textContent = label;
  place.textContent = trail;
  if (!trail) place.remove();
  if (url) option.href = url;
  Object.assign(option.dataset, attributes);
  return option;
}

function fill(name, ...content) {
  parts[name].replaceChildren(...content);
  parts[name].hidden = !content.length;
}

function group(label, entries) {
  const title = element("div", { className: "semantic-group", role: "presentation", textContent: label });
  return entries.length ? [element("div", { role: "group", ariaLabel: label }, title, ...entries)] : [];
}

function showRecent() {
  const { searches, pages } = query() || isNarrowed() ? { searches: [], pages: [] } : recent();
  const viewed = pages.filter(({ url }) => url !== location.pathname).map(({ title, url, path = "" }) =>
    made("far fa-file-alt", title, { url, trail: path.replace(/[^/]*$/, ""), ...(path && { preview: `${SEARCH}/preview?${new URLSearchParams({ path })}` }) }));
  const searched = searches.map((text) => made("fas fa-history", text, { fill: text }));
  fill("recent", ...group("Recently viewed", viewed), ...group("Recent searches", searched));
}

/** Show the commands, at the top if one begins with the text, and the actions; if nothing was found, none about the results. */
function showActions() {
  const text = query().replace(/^"|"$/g, ""), lower = text.toLowerCase();
  const named = [...parts.names.querySelectorAll("[data-title]")].some(({ dataset: { title, path } }) => title.toLowerCase() === lower || `/${path}`.endsWith(`/${lower}`));
  const name = text.replace(/^\/+|\/+$/g, "").split("/").map(encodeURIComponent).join("/");
  const results = `${SEARCH}?${asQuery()}`;
  const exact = here.wikiSearch + (text.includes("/") ? "" : `/${encodeURIComponent(text)}`);
  const urls = { results, only: options.querySelector("[data-corrected]") && `${results}&corrections=false`, answer: /[^!-~]/.test(text) && `${results}#answer`, exact, create: name && !named && here.newPage?.replace("NAME", name) };
  const place = (row) => (text.length === 1 ? -1 : row.textContent.toLowerCase().indexOf(lower)); // of the text in the label
  const commands = rows.filter((each) => "command" in each.dataset && !isNarrowed() && place(each) >= 0).sort((a, b) => place(a) - place(b));
  const isNamed = text && commands[0] && !place(commands[0]);
  const actions = rows.filter((each) => text && urls[each.dataset.action] && !(parts.nearest.firstChild && "found" in each.dataset));
  for (const each of actions) {
    each.href = urls[each.dataset.action];
    if (each.dataset.verb) each.children[1].textContent = `${each.dataset.verb} “${text}”`;
  }
  const listed = group("Commands", commands);
  fill("commands", ...(isNamed ? listed : []));
  fill("actions", ...(isNamed ? [] : listed), ...group("Actions", actions));
}

/** Remove the recently changed pages that are listed as recently viewed. */
function dropViewed() {
  const viewed = [here, ...recent().pages].map(({ path }) => path?.toLowerCase());
  const left = [...parts.names.querySelectorAll("a")].filter((each) => !viewed.includes(each.dataset.path) || each.remove());
  for (const each of left.slice(RECENT)) each.remove();
  if (!left.length) fill("names");
}

const all = () => [...options.querySelectorAll("a")].filter((each) => each.offsetParent);

function activate(option, isMoved = true) {
  active?.removeAttribute("aria-selected");
  active = option ?? null;
  isChosen = isMoved;
  if (active) {
    active.setAttribute("aria-selected", "true");
    active.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", active.id);
  } else field.removeAttribute("aria-activedescendant");
  if (isPreviewing) previewSoon(pane, active);
  showKeys();
}

/** Show what the keys do now; a text replaces the label of a key. */
function showKeys() {
  const { preview, folder, tag, copy } = active?.dataset ?? {}, read = isToRead(), within = tag ? `#${tag}` : folder !== scope.path && folder?.replace(/.+\/(?=.)/, "");
  const does = { choose: active, open: active ? (active.href ? "open" : copy == null ? "select" : "run") : remedy()?.textContent.toLowerCase(), tab: !!active?.href, preview: preview && !isPreviewing, back: isPreviewing, read, narrow: !read && within && `only in ${within}`, all: isNarrowed() };
  for (const each of dialog.querySelectorAll("[data-key]")) {
    const shown = does[each.dataset.key];
    each.hidden = !shown;
    if (typeof shown === "string") each.lastChild.data = ` ${shown}`;
  }
}

/** Whether Tab goes to the answer of the model. */
const isToRead = () => place?.childElementCount && !isChosen;

/** Have the model answer here; without a model, open the answer on the search page. */
function answer() {
  const token = document.querySelector("meta[name=csrf-token]");
  if (!writer || !token) return follow(action("answer"));
  const url = `${SEARCH}/answer?${asQuery()}`;
  if (url === answered && writer.isThere()) return;
  answered = url;
  const form = new FormData();
  form.set("csrf_token", token.content);
  writer.ask(url, form);
  rememberSearch();
  settle();
}

/** Number the options, and keep the one that somebody moved to; else the first that fits is active. */
function settle() {
  const shown = all();
  shown.forEach((option, number) => (option.id = `semantic-option-${number}`));
  const kept = isChosen && active && (shown.includes(active) ? active : shown.find((each) => each.textContent === active.textContent));
  const named = shown.find((each) => each.matches("[data-part=names] :has(mark)"));
  activate(kept || parts.commands.querySelector("a") || named || shown[0], !!kept);
}

/** Load a part; what is shown stays until then. */
async function load(name, parameters) {
  const signal = next[name]();
  try {
    const part = await fetchPart(`${SEARCH}/palette?${asQuery({ part: name, ...parameters })}`, { signal });
    if (signal.aborted) return;
    const content = part.content.querySelector("[data-palette]");
    if (!content) throw Error("proxy");
    const nearest = content.querySelector("[data-nearest]");
    nearest?.remove();
    fill(name, ...content.children);
    if (name === "names" && !query() && !isNarrowed()) dropViewed();
    if (name === "passages") {
      const isNothing = nearest && !options.querySelector("[data-part=names] a,[data-command]"); // what is only near is of no use next to a name that fits
      status.textContent = nearest && !isNothing ? "" : content.dataset.summary;
      fill("nearest", ...(isNothing ? nearest.children : []));
      if (parameters) parts.passages.hidden = false; // it was a draft, and the whole search follows
    }
    showActions();
    settle();
  } catch (error) {
    if (signal.aborted) return;
    fill(name, ...parts[name].children); // hides a part that waits
    status.replaceChildren(failure(error, search));
    activate();
  }
}

function stop() {
  begin.stop();
  finish.stop();
  writer?.clear();
}

function search() {
  isChosen = false;
  stop();
  showRecent();
  fill("nearest");
  showActions();
  load("names");
  if (query()) {
    begin();
    finish();
    parts.passages.hidden = false; // says that it searches while it is empty
  } else {
    next.passages(); // aborts what was asked before
    fill("passages");
    status.textContent = "";
  }
  settle();
}

function narrow(to) {
  scope = to;
  chip.textContent = to.path ?? (to.tag ? `#${to.tag}` : "");
  chip.hidden = !chip.textContent;
  field.focus();
  search();
}

/** Search only the folder of an option, or the pages with a tag; return whether that narrows the search. */
function narrowBy({ folder, tag } = {}) {
  if (!tag && (!folder || folder === scope.path)) return false;
  if (tag) field.value = "";
  narrow(tag ? { tag } : { path: folder });
  return true;
}

function open(text = field.value) {
  if (!dialog.open) {
    field.value = text;
    dialog.showModal();
    narrow({});
  }
  field.select();
}

function follow(option, isNewTab) {
  if (!option) return remedy()?.click();
  const { fill: text, tag, copy, reveal } = option.dataset;
  if (text !== undefined) {
    field.value = text;
    return search();
  }
  if (tag) return narrowBy(option.dataset);
  if (copy === "") return copyText(location.origin + location.pathname, dialog).then((said) => (status.textContent = said));
  if (reveal === "") {
    option.nextElementSibling.hidden = false;
    option.remove();
    return settle();
  }
  rememberSearch();
  if (isNewTab) return void window.open(option.href, "_blank", "noopener");
  dialog.close();
  location.assign(option.href);
}

/** Show the page of the active option beside the options, or hide it; return whether that changes anything. */
function showPreview(isShown) {
  if (isShown === isPreviewing || (isShown && !active?.dataset.preview)) return false;
  isPreviewing = isShown;
  isChosen ||= !!active;
  preview(pane, isShown ? active : null);
  showKeys();
  field.focus();
  return true;
}

dialog.addEventListener("keydown", (event) => {
  const { key, target } = event, isEnter = key === "Enter";
  if (event.isComposing || event.keyCode === 229) return; // an input method is active
  if (place?.contains(target) || pane.contains(target) || (isEnter && target.matches("button"))) return; // they have keys of their own
  const shown = all(), at = shown.indexOf(active), step = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (step && !event.altKey) activate(shown.at(at < 0 && step < 0 ? -1 : (at + step) % shown.length));
  else if (isEnter && event.shiftKey) follow(action(event.ctrlKey ? "results" : "exact"));
  else if (isEnter && event.altKey) action("answer") && answer();
  else if (isEnter) follow(active, event.ctrlKey || event.metaKey);
  else if (key === "Backspace" && isNarrowed() && !field.selectionEnd) narrow({});
  else if (key === "ArrowRight" && field.selectionStart === field.value.length) { if (!showPreview(true)) return; }
  else if (/ArrowLeft|Escape/.test(key)) { if (!showPreview(false)) return; }
  else if (key === "Tab" && !event.shiftKey && document.activeElement === field && !isToRead()) { if (!narrowBy(active?.dataset)) return; }
  else return;
  event.preventDefault();
});

field.addEventListener("input", search);

options.addEventListener("click", (event) => {
  const option = event.target.closest("a");
  if (!option) return;
  if (!isPlainClick(event)) return rememberSearch();
  event.preventDefault();
  if (!event.target.matches(".semantic-peek")) return follow(option);
  activate(option);
  showPreview(true);
});

dialog.addEventListener("click", (event) => {
  const isLeft = event.target.closest("a") && isPlainClick(event) && !event.defaultPrevented; // by a link of a text, no option
  if (isLeft || event.target === dialog || event.target.closest("[data-close]")) { // beside it, or a button
    isLeft || !pane.contains(event.target) ? dialog.close() : showPreview(false);
  }
});
chip.addEventListener("click", () => narrow({}));
find(".btn").addEventListener("click", () => narrowBy(active.dataset));
dialog.addEventListener("close", () => {
  next.names(); // aborts what was asked before
  next.passages();
  stop();
  showPreview(false);
});

addEventListener("keydown", (event) => {
  if (event.isComposing || event.altKey || event.shiftKey) return;
  const isTyping = event.target.isContentEditable || event.target.closest?.("input,textarea,select");
  const isCommand = event.ctrlKey || event.metaKey;
  if (isCommand ? event.key.toLowerCase() !== "k" : event.key !== "/" || isTyping || document.querySelector("#search-query:not(.top-search *)")) return; // the wiki's key goes to the page's own field
  event.preventDefault();
  event.stopPropagation();
  open();
}, true);

const barField = document.querySelector(".top-search input[name=query]");
barField?.setAttribute("aria-haspopup", "dialog");
barField?.addEventListener("pointerdown", (event) => {
  event.preventDefault();
  open(barField.value || undefined);
});
barField?.addEventListener("input", () => {
  const text = barField.value;
  barField.value = "";
  open(text);
  field.selectionStart = text.length;
});

if (here.title) remember("pages", { title: here.title, url: location.pathname, path: here.path });
