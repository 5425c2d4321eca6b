// The search page as one types: results are a part of the page that the wiki renders, and the address is always that of what is shown.
const TYPING_MS = 40, SETTLED_MS = 1200, BUILDING_MS = 2000;
const page = document.getElementById("semantic-search");
const form = document.getElementById("semantic-form");
const field = document.getElementById("search-query");
const status = document.getElementById("semantic-status");
const results = document.getElementById("semantic-results");
const RESULTS = new URL(`${form.action}/results`);
let asked = null; // what stops the request under way
let typing = 0, settling = 0, polling = 0; // timers
let isDraft = false; // whether the address is of words that were not finished

function address() {
  const url = new URL(form.action);
  for (const [name, value] of new FormData(form)) {
    if (value.trim() && !(name === "mode" && value === "hybrid")) url.searchParams.append(name, value.trim());
  }
  return url;
}

async function show(url, { draft = false } = {}) {
  asked?.abort();
  clearTimeout(polling);
  const mine = (asked = new AbortController());
  const source = new URL(RESULTS);
  source.search = url.search;
  if (draft) source.searchParams.set("draft", "1");
  page.setAttribute("aria-busy", "true");
  try {
    const reply = await fetch(source, { signal: mine.signal, headers: { "X-Requested-With": "fetch" }, redirect: "error" });
    if (reply.status === 403) return location.reload();
    const text = await reply.text();
    if (mine.signal.aborted) return;
    if (results.textRendered !== text) results.innerHTML = results.textRendered = text;
    const part = results.firstElementChild;
    say(part?.dataset.summary ?? "The wiki could not answer. Try again in a moment.");
    if (part?.hasAttribute("data-is-building")) polling = setTimeout(() => show(url, { draft: true }), BUILDING_MS);
  } catch (error) {
    if (error.name !== "AbortError") say("The wiki cannot be reached, or you are logged out. Reload the page to try again.");
  } finally {
    if (asked === mine) page.removeAttribute("aria-busy");
  }
}

function say(text) {
  if (status.textContent !== text) status.textContent = text;
}

function step(url) {
  if (url.href !== location.href) history.pushState(null, "", url);
  isDraft = false;
}

function fill(url) {
  field.value = url.searchParams.get("q") ?? "";
  const mode = url.searchParams.get("mode") ?? "hybrid";
  for (const input of form.elements.mode) input.checked = input.value === mode;
  for (const input of form.querySelectorAll("input[type=hidden]")) input.remove();
  for (const [name, value] of url.searchParams) {
    if (["q", "mode", "more"].includes(name)) continue;
    const input = Object.assign(document.createElement("input"), { type: "hidden", name, value });
    form.append(input);
  }
}

function go(url) {
  clearTimeout(typing);
  clearTimeout(settling);
  step(url);
  show(url);
}

field.addEventListener("input", () => {
  clearTimeout(typing);
  clearTimeout(settling);
  typing = setTimeout(() => {
    const url = address();
    if (isDraft) history.replaceState(null, "", url);
    else if (url.href !== location.href) history.pushState(null, "", url);
    isDraft = true;
    show(url, { draft: true });
  }, TYPING_MS);
  settling = setTimeout(() => {
    isDraft = false;
    show(address());
  }, SETTLED_MS);
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const url = address();
  if (isDraft) history.replaceState(null, "", url);
  go(url);
});

form.addEventListener("change", (event) => {
  if (event.target.name === "mode") go(address());
});

results.addEventListener("click", (event) => {
  const link = event.target.closest("a.semantic-chip, a.btn");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const url = new URL(link.href);
  fill(url);
  go(url);
  field.focus();
});

window.addEventListener("popstate", () => {
  const url = new URL(location.href);
  fill(url);
  isDraft = false;
  show(url);
});

page.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const links = [...results.querySelectorAll("a.semantic-passage")].filter((link) => link.checkVisibility());
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

const here = results.firstElementChild;
if (here?.hasAttribute("data-is-building")) polling = setTimeout(() => show(address(), { draft: true }), BUILDING_MS);
