// The map of the wiki: moves and labels the picture that is in the page, and highlights search results as you type.
import { placeLabels } from "./map_labels.js";
import { SEARCH, delayed, element, fetchPart, latest } from "./parts.js";

const STEP = 1.5, MOST_ZOOM = 128, WHEEL = 0.0015, LINE_PX = 33, PAN_PX = 80, CLICK_PX = 4, REACH_PX = 14, MOST_DOT_PX = 14;
const MANY = 500, RESTING_MS = 120, TYPING_MS = 120, MARGIN = 60, MAKING_MS = 2000, MOST_FOUND = 50, MOST_LISTED = 10, POINTING_MS = 100, RELATED = 6;
const LOST = "The wiki cannot be reached, or you are logged out. Reload the page to try again.";
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const byId = (name) => document.getElementById(`semantic-map-${name}`);

async function ask(address, options) {
  const reply = await fetch(address, { headers: { "X-Requested-With": "fetch" }, redirect: "error", ...options });
  if (reply.status === 401 || reply.status === 403) location.reload();
  return reply;
}

function wait(address) {
  setTimeout(async () => {
    const state = document.hidden ? "making" : await ask(address).then(async (reply) => (await reply.json()).state).catch(() => "making");
    if (state === "making") wait(address);
    else location.reload();
  }, MAKING_MS);
}

function leastOf(among, cost) {
  const [best] = among.map((each) => [each, cost(each)]).reduce((one, other) => (other[1] < one[1] ? other : one), [null, Infinity]);
  return best;
}

function show(plot, points, byUrl) {
  const layer = plot.firstElementChild, svg = layer.firstElementChild;
  const { width } = svg.viewBox.baseVal, dot = parseFloat(getComputedStyle(svg).getPropertyValue("--s-map-dot"));
  const ring = svg.querySelector(".semantic-map-here"), labels = svg.querySelector(".semantic-map-labels"), buttons = byId("buttons");
  const names = [...svg.querySelectorAll("[data-name]")].map((group) => ({ group, title: group.dataset.name }));
  const whole = frameOf(points);
  let box = whole, drawn = box, here = null, near = [], found = null, frame = 0, resting = 0;

  // Returns how the picture lies on the screen: what one unit and a place are in pixels, and the other way round.
  function projection() {
    const view = plot.getBoundingClientRect(), scale = Math.min(view.width / box.width, view.height / box.height);
    const x = view.left + view.width / 2 - (box.x + box.width / 2) * scale, y = view.top + view.height / 2 - (box.y + box.height / 2) * scale;
    return { view, scale, pixel: (at) => [at.x * scale + x, at.y * scale + y], place: ([across, down]) => ({ x: (across - x) / scale, y: (down - y) / scale }) };
  }

  function change() {
    plot.classList.toggle("semantic-map-whole", box.width === whole.width);
    clearTimeout(resting);
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      if (points.length <= MANY) return draw();
      const { scale } = projection(), x = drawn.x + drawn.width / 2 - box.x - box.width / 2, y = drawn.y + drawn.height / 2 - box.y - box.height / 2;
      layer.style.transform = `translate(${x * scale}px, ${y * scale}px) scale(${drawn.width / box.width})`; // which the browser has drawn already
      resting = setTimeout(draw, RESTING_MS);
    });
  }

  function draw() {
    resting = 0;
    drawn = box;
    svg.setAttribute("viewBox", `${box.x} ${box.y} ${box.width} ${box.height}`);
    layer.style.transform = "";
    svg.style.setProperty("--s-map-dot", dotPx() / projection().scale);
    label();
  }

  const dotPx = () => Math.min(MOST_DOT_PX, dot * Math.sqrt(width / box.width));
  const label = () => resting || placeLabels(labels, points.filter(isShown), projection(), { names, here, near, found, radius: dotPx() / 2, covered: [buttons.getBoundingClientRect()] });
  const isShown = ({ group }) => !group.hasAttribute("hidden");

  function pointAt(point) {
    if (point === here) return;
    here = point;
    for (const [name, value] of [["cx", here?.x], ["cy", here?.y]]) here ? ring.setAttribute(name, value) : ring.removeAttribute(name);
    connect([]);
    relate(point);
  }

  // Connects the selected page with its related pages, and lists links to them; these stay until another page is selected.
  const relate = delayed(async (point) => {
    if (point) point.related ??= await relatedOf(point).catch(() => null); // it is asked for again when the wiki is back
    if (!point?.related || point !== here) return;
    connect(point.related.filter(isShown));
    const list = near.length ? listOf(near) : "No related pages.";
    byId("nearest").replaceChildren(element("h2", {}, linkTo(here, here.title)), element("p", { className: "semantic-count", textContent: "Related pages" }), list);
  }, POINTING_MS);

  async function relatedOf(point) {
    const source = new URL(plot.dataset.related, location.href);
    source.search = new URLSearchParams({ path: point.path, n: RELATED });
    const { results } = await (await ask(source)).json();
    return results.filter((each) => each.relevant).map((each) => byUrl.get(each.url?.split("#")[0])).filter(Boolean);
  }

  function connect(others) {
    near = others;
    for (const link of svg.querySelectorAll(".semantic-map-near")) link.classList.remove("semantic-map-near");
    if (here) for (const { link } of [here, ...near]) link.classList.add("semantic-map-near");
    dim();
    svg.querySelector(".semantic-map-lines").setAttribute("d", near.map(({ x, y }) => `M${here.x} ${here.y}L${x} ${y}`).join(""));
    label();
  }

  const dim = () => svg.classList.toggle("semantic-map-dim", Boolean(here || found));
  const linkTo = ({ link }, textContent) => element("a", { href: link.href.baseVal, textContent });
  const listOf = (pages) => element("ul", {}, ...pages.map((each) => element("li", {}, linkTo(each, each.title))));
  const middle = () => ({ x: box.x + box.width / 2, y: box.y + box.height / 2 });

  function moveTo(x, y) {
    const within = (least, size, middle) => Math.min(least + size, Math.max(least, middle));
    box = { ...box, x: within(whole.x, whole.width, x + box.width / 2) - box.width / 2, y: within(whole.y, whole.height, y + box.height / 2) - box.height / 2 };
    change();
  }

  function reset() {
    box = whole;
    change();
  }

  // Returns the part of the picture that has these points, with a margin.
  function frameOf(those) {
    const sides = ["x", "y"].map((axis) => those.map((each) => each[axis])), [x, y] = sides.map((side) => Math.min(...side) - MARGIN);
    const [right, bottom] = sides.map((side) => Math.max(...side) + MARGIN);
    return { x, y, width: right - x, height: bottom - y };
  }

  // Shows the groups whose boxes are checked as large as they fit.
  function fit() {
    const shown = points.filter(isShown), { x, y, width, height } = shown.length ? frameOf(shown) : whole;
    const share = Math.max(width / whole.width, height / whole.height);
    box = { ...whole, width: whole.width * share, height: whole.height * share };
    if (share < 1) moveTo(x + (width - box.width) / 2, y + (height - box.height) / 2);
    else reset();
  }

  // Zooms around a place, which stays where it is; returns whether anything changed.
  function zoomBy(factor, around = here ?? middle()) {
    const share = Math.max(1 / MOST_ZOOM, Math.min(1, box.width / factor / whole.width)), by = (share * whole.width) / box.width;
    if (by === 1) return false;
    if (share === 1) return reset(), true;
    box = { ...box, width: whole.width * share, height: whole.height * share };
    moveTo(around.x - (around.x - box.x) * by, around.y - (around.y - box.y) * by);
    return true;
  }

  const placeOf = (event) => projection().place([event.clientX, event.clientY]);

  function under(event) {
    const { x, y } = placeOf(event), reach = REACH_PX / projection().scale;
    return leastOf(points.filter(isShown), (point) => {
      const away = Math.hypot(point.x - x, point.y - y);
      return away <= reach ? away : Infinity;
    });
  }

  // Goes to the next page in a direction: within 45 degrees, preferably near and straight ahead.
  function step([right, down]) {
    const from = here ?? middle();
    const next = leastOf([...(found ?? points)].filter(isShown), (point) => {
      const x = point.x - from.x, y = point.y - from.y, along = x * right + y * down, aside = Math.abs(x * down) + Math.abs(y * right);
      return here && (along <= 0 || aside > along) ? Infinity : Math.abs(along) + 2 * aside;
    });
    if (!next) return;
    const isSeen = next.x > box.x && next.y > box.y && next.x < box.x + box.width && next.y < box.y + box.height;
    if (!isSeen) moveTo(next.x - box.width / 2, next.y - box.height / 2);
    next.link.focus({ preventScroll: true });
  }

  // With the pointer: one drags, two zoom
  const held = new Map();
  let travelled = 0, isTouch = false;

  plot.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    if (!held.size) [travelled, isTouch] = [0, event.pointerType === "touch"];
    held.set(event.pointerId, event);
  });
  plot.addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId), { scale } = projection();
    if (!before) return void (event.pointerType !== "touch" && pointAt(under(event)));
    const other = [...held.values()].find((each) => each !== before);
    travelled += Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY);
    held.set(event.pointerId, event);
    if (travelled > CLICK_PX) plot.setPointerCapture(event.pointerId);
    const apart = (each) => Math.hypot(each.clientX - other.clientX, each.clientY - other.clientY);
    if (other) zoomBy(apart(event) / Math.max(1, apart(before)), placeOf(other));
    else if (travelled > CLICK_PX) moveTo(box.x - (event.clientX - before.clientX) / scale, box.y - (event.clientY - before.clientY) / scale);
  });
  for (const name of ["pointerup", "pointercancel"]) plot.addEventListener(name, (event) => held.delete(event.pointerId));
  plot.addEventListener("pointerleave", (event) => event.pointerType === "touch" || plot.querySelector(":focus") || pointAt(null));
  plot.addEventListener("dragstart", (event) => event.preventDefault());
  plot.addEventListener("click", (event) => {
    if (!event.detail) return; // a key opens the page
    const point = travelled > CLICK_PX ? null : under(event), isFirstTouch = isTouch && point !== here;
    if (travelled <= CLICK_PX) pointAt(point);
    if (point && !isFirstTouch && point.link.contains(event.target)) return; // the link opens it
    event.preventDefault();
    if (point && !isFirstTouch && point.link.href.baseVal) location.assign(point.link.href.baseVal);
  });
  plot.addEventListener("wheel", (event) => {
    if (event.shiftKey) return;
    const pixels = event.deltaY * (event.deltaMode ? LINE_PX : 1) * (event.ctrlKey ? 5 : 1);
    if (zoomBy(Math.exp(-pixels * WHEEL), placeOf(event))) event.preventDefault(); // at the limit the page scrolls
  }, { passive: false });

  // With keys and buttons
  const keys = { "+": () => zoomBy(STEP), "=": () => zoomBy(STEP), "-": () => zoomBy(1 / STEP), 0: fit, Home: fit, Escape: () => pointAt(null) };
  plot.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const direction = DIRECTIONS[event.key], pan = PAN_PX / projection().scale;
    if (direction && event.shiftKey) moveTo(box.x + direction[0] * pan, box.y + direction[1] * pan);
    else if (direction) step(direction);
    else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  });
  plot.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && pointAt(points.find(({ link }) => link === event.target) ?? null));
  plot.addEventListener("focusout", () => pointAt(null));
  [() => zoomBy(STEP), () => zoomBy(1 / STEP), fit].forEach((act, at) => buttons.children[at].addEventListener("click", act));
  buttons.hidden = byId("keys").hidden = false;
  plot.tabIndex = -1; // a click on it gives it the keys
  const legend = document.querySelector(".semantic-map-legend"), boxes = [...legend.querySelectorAll("input")], all = element("input", { type: "checkbox" });

  const isAlone = (box) => boxes.every((each) => each.checked === (each === box));

  // Shows the groups whose boxes are checked; the first page that is shown can be reached with Tab.
  function filter() {
    for (const box of boxes) {
      svg.querySelector(`.semantic-map-${box.value}`).toggleAttribute("hidden", !box.checked);
      box.parentElement.title = isAlone(box) ? "Show all groups" : "Show only this group";
    }
    all.checked = boxes.every((each) => each.checked);
    all.indeterminate = !all.checked && boxes.some((each) => each.checked);
    svg.querySelector("[tabindex='0']")?.setAttribute("tabindex", -1);
    points.find(isShown)?.link.setAttribute("tabindex", 0);
    label();
  }

  function toggle(box) {
    const isAll = isAlone(box);
    for (const each of boxes) each.checked = isAll || each === box;
    filter();
  }

  all.addEventListener("change", () => {
    for (const each of boxes) each.checked = all.checked;
    filter();
  });
  legend.prepend(element("li", {}, element("label", {}, all, element("bdi", { textContent: "Show all" }), element("span", { className: "semantic-count ml-auto", textContent: points.length.toLocaleString("en") }))));
  for (const box of boxes) {
    box.hidden = false;
    box.title = ""; // it shows or hides its group
    box.addEventListener("change", filter);
    box.addEventListener("keydown", (event) => event.key === "Enter" && toggle(box));
    box.parentElement.addEventListener("click", (event) => {
      if (event.target === box) return;
      event.preventDefault();
      toggle(box);
    });
  }
  filter();
  new ResizeObserver(draw).observe(plot);
  document.fonts.ready.then(draw); // the widths of the labels are known

  return (those) => {
    found = those;
    dim();
    for (const point of points) point.link.classList.toggle("semantic-map-found", Boolean(found?.has(point)));
    for (const box of [all, ...boxes]) {
      const group = svg.querySelector(`.semantic-map-${box.value}`), count = box.parentElement.querySelector(".semantic-count");
      const number = [...(found ?? [])].filter((point) => !group || point.group === group).length;
      count.dataset.all ??= count.textContent;
      count.textContent = !found ? count.dataset.all : group ? number : `${number} of ${count.dataset.all}`;
      box.parentElement.classList.toggle("semantic-quiet", Boolean(found) && !number);
      box.parentElement.classList.toggle("font-weight-bold", number > 0);
    }
    const best = [...(found ?? [])].slice(0, MOST_LISTED);
    byId("nearest").replaceChildren(...(best.length ? [element("h2", { textContent: found.size > MOST_LISTED ? `Best ${MOST_LISTED} of ${found.size}` : "Found" }), listOf(best)] : []));
    label();
  };
}

function searching(byUrl, highlight) {
  const form = byId("form"), field = form.elements.q, status = byId("status");
  const next = latest(), type = delayed(() => search(true), TYPING_MS);

  function light(found, text) {
    highlight(found);
    status.textContent = text;
    byId("list").hidden = !found?.size;
    byId("actions").replaceChildren();
  }

  async function find(query, draft) {
    const signal = next(), source = new URL(form.dataset.search, location.href);
    for (const link of document.querySelectorAll(".semantic-map-page a[data-query]")) link.href = withQuery(link.href, query);
    history.replaceState(null, "", withQuery(location.href, query));
    if (!query) return light(null, "");
    source.search = new URLSearchParams({ q: query, n: MOST_FOUND, max_chunks_per_page: 1, ...(draft ? { draft: 1 } : {}) });
    const reply = await ask(source, { signal }), answer = await reply.json();
    if (signal.aborted) return;
    if (!reply.ok) return light(null, answer.error?.message ?? "The wiki could not answer. Try again in a moment.");
    const relevant = answer.results.filter((each) => each.relevant).map((each) => byUrl.get(each.url?.split("#")[0]));
    const found = new Set(relevant.filter(Boolean)), count = found.size;
    light(count ? found : null, count ? (count < MOST_FOUND ? `${count} ${count === 1 ? "page" : "pages"} found.` : `The ${count} best pages found.`) : "Nothing in this wiki seems to be about this.");
    if (count) return;
    const page = await fetchPart(`${SEARCH}/results?${new URLSearchParams({ q: query, draft: 1 })}`, { signal });
    byId("actions").replaceChildren(...page.content.querySelectorAll(".semantic-nothing")); // what the search page offers
  }

  function search(draft) {
    type.stop();
    find(field.value.trim(), draft).catch((error) => error.name !== "AbortError" && (status.textContent = LOST));
  }

  field.addEventListener("input", type);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    search(false);
  });
  if (field.value.trim()) search(true);
}

// Pages higher up in the wiki get a label first; neighbours in the document, which are often neighbours on the map, not one after the other.
function byImportance(points) {
  const mixed = new Map(points.map((point, at) => [point, Math.imul(at + 1, 0x9e3779b1) >>> 0]));
  return points.sort((one, other) => one.depth - other.depth || mixed.get(one) - mixed.get(other));
}

function withQuery(address, query) {
  const url = new URL(address);
  if (query) url.searchParams.set("q", query);
  else url.searchParams.delete("q");
  return url.href;
}

if (byId("making")) wait(byId("making").dataset.map);
if (byId("plot")) {
  const points = [...byId("plot").querySelectorAll("a")].map((link) => {
    const [x, y] = link.lastElementChild.getAttribute("d").match(/-?[\d.]+/g).map(Number), [title, place] = link.textContent.split("\n"), [path] = place.split(" · ");
    return { link, x, y, title, path, depth: path.split("/").length, group: link.parentElement };
  });
  const likes = new Map();
  for (const point of points) likes.set(point.title, [...(likes.get(point.title) ?? []), point]);
  for (const like of [...likes.values()].filter(({ length }) => length > 1)) {
    const folders = like.map(({ path }) => path.slice(0, path.lastIndexOf("/") + 1)), isTold = new Set(folders).size === like.length;
    like.forEach((point, at) => (point.suffix = ` (${isTold ? folders[at] || point.path : point.path.slice(folders[at].length)})`)); // equal labels differ
  }
  const byUrl = new Map(points.map((point) => [point.link.getAttribute("href"), point]));
  searching(byUrl, show(byId("plot"), byImportance(points), byUrl));
}
