// The search page as one types: results are a part of the page that the wiki renders, and the address is always that of what is shown.
const TYPING_MS = 40, SETTLED_MS = 1200, SLOW_MS = 1000, AGAIN_MS = 2500;
const FILTERS = ["category", "tag", "path"];
const form = document.getElementById("semantic-form");
const field = document.getElementById("search-query");
const status = document.getElementById("semantic-status"); // for who sees it
const said = document.getElementById("semantic-said"); // for who hears it: only what stays
const results = document.getElementById("semantic-results");
const SEARCH = new URL(form.getAttribute("action"), location.href);
let shown = results.innerHTML.trim(); // the part that is in the page, as the wiki rendered it
let noted = new URL(location.href).searchParams.get("q"); // the question that was asked last, other than by typing
let current = location.href; // the address of what is shown, or asked for
let asked = null; // what stops the request under way
let typing = 0, settling = 0, polling = 0; // timers
let isDraft = false; // whether the last entry of the history is of words that were not finished

/** The address of what the form asks. */
function address() {
  const url = new URL(SEARCH);
  for (const [name, value] of new FormData(form)) {
    if (value.trim() && !(name === "mode" && value === "hybrid")) url.searchParams.append(name, value.trim());
  }
  return url;
}

/** Show what an address finds. Words that are not finished, and a question asked already, are not told to be new. */
async function show(url, { isUnfinished = false, isUnasked = false } = {}) {
  asked?.abort();
  clearTimeout(polling);
  current = url.href;
  const mine = (asked = new AbortController());
  const source = new URL(`${SEARCH.pathname}/results${url.search}`, SEARCH);
  const question = url.searchParams.get("q");
  if (isUnfinished || isUnasked || question === noted) source.searchParams.set("draft", isUnfinished ? "typing" : "1");
  else noted = question;
  results.setAttribute("aria-busy", "true");
  const slow = isUnasked ? 0 : setTimeout(() => say("Searching …"), SLOW_MS);
  let isToAskAgain = true;
  try {
    const reply = await fetch(source, { signal: mine.signal, redirect: "error" });
    if (reply.status === 403) return location.reload();
    const text = (await reply.text()).trim();
    if (mine.signal.aborted) return;
    const part = document.createElement("template");
    part.innerHTML = text;
    const summary = part.content.firstElementChild?.dataset.summary;
    if (summary === undefined) return say("The wiki could not answer; it is asked again."); // these are another server's words
    if (shown !== text && !(isUnasked && results.contains(document.activeElement))) {
      results.replaceChildren(part.content);
      shown = text;
    }
    isToAskAgain = isPassing();
    say(summary, { isHeard: !isUnfinished });
  } catch (error) {
    if (error.name !== "AbortError") say("The wiki cannot be reached, or you are logged out. It is asked again.");
  } finally {
    clearTimeout(slow);
    if (asked === mine) {
      results.removeAttribute("aria-busy");
      if (isToAskAgain) askAgain(url);
    }
  }
}

/** Whether what is shown will soon be otherwise: the index is being built, or could not answer. */
function isPassing() {
  return results.firstElementChild?.hasAttribute("data-is-passing") ?? false;
}

function askAgain(url) {
  polling = setTimeout(() => (document.hidden ? askAgain(url) : show(url, { isUnasked: true })), AGAIN_MS);
}

function say(text, { isHeard = true } = {}) {
  status.textContent = text;
  if (isHeard && said.textContent.trim() !== text) said.textContent = text;
}

function stopTimers() {
  for (const timer of [typing, settling, polling]) clearTimeout(timer);
}

/** What an address asks, however it is written. */
function askedBy(url) {
  return [...url.searchParams].filter(([name, value]) => name !== "mode" || value !== "hybrid").sort().join("\n");
}

/** Make an address the page's: a new entry of the history, unless the last one is of unfinished words. */
function enter(url, isUnfinished) {
  if (askedBy(url) !== askedBy(new URL(location.href))) {
    if (isDraft) history.replaceState(null, "", url);
    else history.pushState(null, "", url);
    isDraft = isUnfinished;
  } else if (!isUnfinished) isDraft = false;
}

/** Let the form ask what an address does. */
function fill(url) {
  field.value = url.searchParams.get("q") ?? "";
  const mode = url.searchParams.get("mode") ?? "hybrid";
  for (const input of form.querySelectorAll("input[name=mode]")) input.checked = input.value === mode;
  for (const input of form.querySelectorAll("input[type=hidden]")) input.remove();
  for (const [name, value] of url.searchParams) {
    if (FILTERS.includes(name)) form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
  }
}

function go(url) {
  stopTimers();
  enter(url, false);
  return show(url);
}

field.addEventListener("input", () => {
  stopTimers();
  typing = setTimeout(() => {
    enter(address(), true);
    show(address(), { isUnfinished: true });
  }, TYPING_MS);
  settling = setTimeout(() => {
    isDraft = false;
    show(address());
  }, SETTLED_MS);
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  go(address());
});

form.addEventListener("change", (event) => {
  if (event.target.name === "mode") go(address());
});

results.addEventListener("click", async (event) => {
  const link = event.target.closest("a.semantic-chip, a.semantic-more");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const url = new URL(link.href);
  const before = passages().length;
  fill(url);
  await go(url);
  const next = link.matches(".semantic-more") ? passages()[before] : results.querySelector(`a.semantic-chip[data-chip="${CSS.escape(link.dataset.chip)}"]`);
  (next ?? results.querySelector("a.semantic-chip") ?? field).focus({ preventScroll: true });
});

window.addEventListener("popstate", () => {
  const url = new URL(location.href);
  if (askedBy(url) === askedBy(new URL(current))) return; // only the fragment differs
  stopTimers();
  isDraft = false;
  fill(url);
  show(url);
});

function passages() {
  return [...results.querySelectorAll("a.semantic-passage")].filter((link) => link.offsetParent !== null);
}

document.getElementById("semantic-search").addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229) return; // the keys are an input method's
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const links = passages();
  const at = links.indexOf(document.activeElement);
  const isField = document.activeElement === field;
  let next = null;
  if (event.key === "ArrowDown" && (isField || at >= 0)) next = links[isField ? 0 : at + 1];
  else if (event.key === "ArrowUp" && at >= 0) next = at ? links[at - 1] : field;
  else if (event.key === "Escape" && at >= 0) next = field;
  else return;
  event.preventDefault();
  next?.focus();
});

if (isPassing()) askAgain(new URL(location.href));
