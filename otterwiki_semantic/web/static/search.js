// Search as you type: results are rendered by the wiki, and the URL is always that of what is shown.
import { SEARCH, byId, delayed, failure, fetchPart, isPlainClick, latest } from "./parts.js";
import { mark, preview, previewSoon, select, tidy } from "./preview.js";

const TYPING_MS = 40, SETTLED_MS = 1200, SLOW_MS = 1000, POLL_MS = 2500;
const form = byId("form");
const field = form.elements.q;
const status = byId("status"); // visible
const said = byId("said"); // for screen readers: only what stays
const results = byId("results");
const controls = byId("controls");
const pane = byId("preview");
const isWide = matchMedia("(min-width: 1200px)");
let shown = ""; // the results in the page, as the wiki rendered them
let noted = new URL(location).searchParams.get("q"); // the last query that was not a draft
let current = location.href; // the URL of what is shown or loading
let chosen; // the passage that the arrow keys have reached; the focus stays in the field
let isDraft = false; // whether the last history entry is an unfinished query
const next = latest();
const poll = delayed((url) => (document.hidden ? poll(url) : show(url, { isPolling: true })), POLL_MS);
const settle = delayed(() => {
  isDraft = false;
  show(formUrl());
}, SETTLED_MS);
const type = delayed(() => {
  enter(formUrl(), true);
  show(formUrl(), { isUnfinished: true });
}, TYPING_MS);

const isSet = ([, value]) => value.trim();

function formUrl() {
  const url = new URL(SEARCH, location);
  for (const [name, value] of [...new FormData(form)].filter(isSet)) url.searchParams.append(name, value.trim());
  return url;
}

/** Show the results of a URL. Unfinished and repeated queries are marked as drafts. */
async function show(url, { isUnfinished, isPolling } = {}) {
  poll.stop();
  current = url.href;
  const signal = next(), source = new URL(`${SEARCH}/results${url.search}`, location), question = url.searchParams.get("q");
  if (isUnfinished || isPolling || question === noted) source.searchParams.set("draft", isUnfinished ? "typing" : "1");
  else noted = question;
  results.ariaBusy = true;
  const slow = isPolling ? 0 : setTimeout(() => say("Searching…"), SLOW_MS);
  let isToPoll = true;
  try {
    const { text, content } = await fetchPart(source, { signal });
    if (signal.aborted) return;
    const part = content.firstElementChild, menus = content.querySelector("[data-controls]");
    if (!menus) throw Error("proxy");
    const used = document.activeElement, isRead = results.contains(used), isMenu = controls.contains(used);
    if (shown !== text && !(isPolling && isRead)) {
      controls.replaceChildren(...menus.childNodes);
      results.replaceChildren(part);
      shown = text;
      fit();
      choose(chosen && passages().find(({ dataset }) => dataset.preview === chosen.dataset.preview)); // its best sentence may be another one now
      if (!chosen) (pane.hidden ? preview : previewSoon)(pane, first());
      if (isRead) results.querySelector(".semantic-passage")?.focus({ preventScroll: true });
      if (isMenu) (controls.querySelector(`[name="${used.name}"]`) ?? field).focus({ preventScroll: true });
    }
    isToPoll = isPassing();
    say(part.dataset.summary, isUnfinished);
  } catch (error) {
    if (signal.aborted) return;
    const alert = failure(error, () => show(formUrl())), old = results.querySelector(".semantic-failure");
    if (old?.textContent !== alert.textContent) old ? old.replaceWith(alert) : results.prepend(alert); // else somebody may be about to press its button
    shown = "";
  } finally {
    clearTimeout(slow);
    if (!signal.aborted) {
      results.ariaBusy = null;
      if (isToPoll) poll(url);
    }
  }
}

/** Return whether the results will change soon: the index is being built, or could not answer. */
const isPassing = () => results.querySelector("[data-is-passing]");

function say(text, isUnfinished) {
  status.textContent = text;
  if (!isUnfinished && said.textContent !== text) said.textContent = text;
}

function stopTimers() {
  for (const timer of [type, settle, poll]) timer.stop();
}

const normalized = (url) => [...url.searchParams].filter(isSet).sort().join("\n");

/** Make a URL that of the page, in a new history entry unless the last one is an unfinished query. */
function enter(url, isUnfinished) {
  if (normalized(url) !== normalized(new URL(location))) {
    history[isDraft ? "replaceState" : "pushState"](null, "", url);
    isDraft = isUnfinished;
  } else if (!isUnfinished) isDraft = false;
}

function go(url) {
  stopTimers();
  enter(url, false);
  return show(url);
}

field.addEventListener("input", () => {
  choose();
  type();
  settle();
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  go(formUrl());
});

controls.addEventListener("change", () => go(formUrl()));

byId("search").addEventListener("click", async (event) => {
  const link = event.target.closest("a.semantic-more");
  if (!link || !isPlainClick(event)) return;
  event.preventDefault();
  const before = results.contains(link) ? passages().length : -1; // a filter is removed
  await go(new URL(link.href));
  (passages()[before] ?? field).focus({ preventScroll: true });
});

results.addEventListener("toggle", async ({ target }) => {
  const { source } = target.dataset;
  if (!source || !target.open) return;
  delete target.dataset.source;
  const part = await fetchPart(source).catch(() => {}), content = part?.content.querySelector(".semantic-rendered");
  if (content) {
    tidy(content);
    mark(target.parentNode, content.querySelectorAll("*"));
    target.querySelector(".semantic-rendered").replaceWith(content);
  }
  else target.dataset.source = source; // try again when it is opened again
}, true);

addEventListener("popstate", () => {
  const url = new URL(location);
  if (normalized(url) === normalized(new URL(current))) return; // only the fragment differs
  stopTimers();
  isDraft = false;
  field.value = url.searchParams.get("q"); // null empties it
  show(url);
});

/** Offer the whole passage only where its excerpt is cut, and count the filters in use. All are measured before one is hidden: in one layout. */
function fit() {
  form.lastElementChild.lastChild.data = ` ${controls.querySelectorAll("a").length || ""}`;
  for (const each of results.querySelectorAll(".semantic-open")) {
    const { textContent, scrollHeight, clientHeight } = each.parentNode.querySelector(".semantic-excerpt");
    queueMicrotask(() => each.hidden = clientHeight && clientHeight >= scrollHeight && !/^…|…$/.test(textContent));
  }
}

const passages = () => [...results.querySelectorAll(".semantic-passage[href]")].filter((link) => link.checkVisibility());

/** Return the passage to preview; none in a narrow window. */
const first = () => (isWide.matches ? passages()[0] : null);

/** Choose a passage, which Enter opens, or none. */
function choose(link) {
  select(chosen, link);
  chosen = link;
  if (!link) return field.removeAttribute("aria-activedescendant");
  link.id ||= `semantic-passage-${passages().indexOf(link)}`;
  link.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", link.id);
  if (isWide.matches) preview(pane, link);
}

/** Move from passage to passage: with the focus where it is among them, else without it. */
byId("search").addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229 || event.altKey || event.shiftKey) return;
  const { key, target } = event, links = passages(), isField = target === field;
  const at = links.indexOf(isField ? chosen : target), step = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (key === "Enter" && isField && chosen) {
    if (event.ctrlKey || event.metaKey) open(chosen.href, "_blank", "noopener");
    else location.assign(chosen.href);
  } else if (event.ctrlKey || event.metaKey) return;
  else if (key === "Escape" && isField && chosen) choose();
  else if (key === "Escape" && at >= 0) field.focus();
  else if (step && isField) choose(links[Math.max(at + step, -1)] ?? (step > 0 ? chosen : null));
  else if (step && at >= 0) (links[at + step] ?? (step < 0 ? field : target)).focus();
  else return;
  event.preventDefault();
});

for (const kind of ["pointerover", "focusin"]) {
  results.addEventListener(kind, (event) => {
    const link = event.target.closest(".semantic-passage[href]");
    if (link && isWide.matches && !chosen && event.pointerType !== "touch") previewSoon(pane, link);
  });
}

fit();
preview(pane, first());
if (isPassing()) poll(new URL(location));
