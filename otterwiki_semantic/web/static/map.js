// The map of the wiki: loads its points after the page itself, and highlights search results as you type.
import { Drawing } from "./map_drawing.js";
import { firstChoice, groupsOf, isGrey, numeral, showLegend } from "./map_groups.js";
import { moving } from "./map_moving.js";
import { View } from "./map_view.js";

const TYPING_MS = 120, MAKING_MS = 2000, RESTING_MS = 10000, MOST_FOUND = 50;
const page = document.getElementById("semantic-map");
const form = document.getElementById("semantic-map-form");
const field = document.getElementById("search-query");
const list = document.getElementById("semantic-map-list");
const status = document.getElementById("semantic-map-status");
const part = document.getElementById("semantic-map-part");
const inSight = document.getElementById("semantic-map-in-sight");
const LOST = "The wiki cannot be reached, or you are logged out. Reload the page to try again.";
let asked = null; // aborts the search in progress
let typing = 0;

async function ask(address, options) {
  const reply = await fetch(address, { headers: { "X-Requested-With": "fetch" }, redirect: "error", ...options });
  if (reply.status === 401 || reply.status === 403) location.reload();
  return reply;
}

function say(text) {
  if (status.textContent !== text) status.textContent = text;
}

let state = null; // of the map when it was last loaded

async function load() {
  const reply = await ask(page.dataset.map);
  if (!reply.ok) throw new Error(`the map cannot be loaded: ${reply.status}`);
  const map = await reply.json();
  const isReady = map.state === "ready";
  if (isReady !== Boolean(part.querySelector("table")) || (state && map.state !== state)) await loadPart();
  state = map.state;
  say("");
  if (isReady && map.points.length) show(map.points);
  else setTimeout(begin, map.state === "making" ? MAKING_MS : RESTING_MS);
}

async function loadPart() {
  const source = new URL(location.href);
  source.searchParams.set("part", "table");
  const reply = await ask(source);
  if (reply.ok) part.innerHTML = await reply.text();
}

function begin() {
  if (document.hidden) return void setTimeout(begin, MAKING_MS);
  load().catch(() => {
    say("The map cannot be loaded now. Retrying …");
    setTimeout(begin, RESTING_MS);
  });
}

function show(points) {
  page.hidden = form.hidden = false;
  const canvas = document.getElementById("semantic-map-canvas");
  const tip = document.getElementById("semantic-map-tip");
  const view = new View(points);
  const buttonsPlace = page.querySelector(".semantic-map-buttons");
  const drawing = new Drawing(canvas, points, view, buttonsPlace, (seen) => (inSight.textContent = `${numeral(seen)} of ${numeral(points.length)} pages visible`));
  const buttons = { in: document.getElementById("semantic-map-in"), out: document.getElementById("semantic-map-out"), reset: document.getElementById("semantic-map-reset") };
  moving({ canvas, tip, buttons, points, view, drawing });
  colouring(points, drawing);
  searching(points, drawing);
}

function colouring(points, drawing) {
  const colour = () => {
    const groups = groupsOf(points, form.elements.by.value);
    showLegend(document.getElementById("semantic-map-legend"), groups);
    drawing.set({ groups: [...groups.filter(isGrey), ...groups.filter((group) => !isGrey(group))] }); // the last ones are drawn on top
  };
  form.elements.by.value = firstChoice(points);
  document.getElementById("semantic-map-clusters").hidden = !points.some((point) => point.cluster);
  form.addEventListener("change", (event) => event.target.name === "by" && colour());
  colour();
}

// Searching

function searching(points, drawing) {
  const numbers = new Map(points.map((point, at) => [point.path, at]));

  async function find(query, { draft }) {
    asked?.abort();
    const mine = (asked = new AbortController());
    keep(query);
    if (!query) return light(null, "");
    const source = new URL(page.dataset.search, location.href);
    source.search = new URLSearchParams({ q: query, n: MOST_FOUND, max_chunks_per_page: 1, ...(draft ? { draft: 1 } : {}) });
    const reply = await ask(source, { signal: mine.signal });
    const answer = await reply.json();
    if (mine.signal.aborted) return;
    if (!reply.ok) return light(null, answer.error?.message ?? "The wiki could not answer. Try again in a moment.");
    const paths = answer.results.filter((each) => each.relevant).map((each) => each.path);
    const found = new Set(paths.map((path) => numbers.get(path)).filter((at) => at !== undefined));
    light(found, found.size ? summary(found.size) : "Nothing relevant was found.");
  }

  function light(found, text) {
    drawing.set({ found });
    say(text);
  }

  function search(draft) {
    clearTimeout(typing);
    find(field.value.trim(), { draft }).catch((error) => error.name !== "AbortError" && say(LOST));
  }

  field.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => search(true), TYPING_MS);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    search(false);
  });
  if (field.value.trim()) search(true);
}

function summary(count) {
  if (count === 1) return "1 page found.";
  return count < MOST_FOUND ? `${count} pages found.` : `The ${count} best pages found.`;
}

function keep(query) {
  for (const [link, base] of [[list, form.action], [null, location.href]]) {
    const url = new URL(base);
    if (query) url.searchParams.set("q", query);
    else url.searchParams.delete("q");
    if (link) Object.assign(link, { href: url, hidden: !query });
    else if (url.href !== location.href) history.replaceState(null, "", url);
  }
}

begin();
