// Pan, zoom, and open pages: with mouse, touch, keyboard and buttons.
import { Grid } from "./map_grid.js";

const STEP = 1.5, PAN_PX = 80, CLICK_PX = 4, REACH_PX = 14, WHEEL = 0.0015, LINE_PX = 33;
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function moving({ canvas, tip, buttons, points, view, drawing }) {
  const plot = canvas.parentElement, grid = new Grid(points), held = new Map();
  let isDragged = false, isTouch = false, travelled = 0;

  function pointAt(at) {
    if (at === drawing.here) return;
    drawing.here = at;
    changed();
  }

  function changed() {
    canvas.classList.toggle("semantic-map-whole", view.zoom === 1);
    canvas.classList.toggle("semantic-map-on-page", drawing.here !== null);
    showTip(tip, view, drawing.here === null ? null : points[drawing.here]);
    drawing.change();
  }

  function zoomBy(factor, left, top) {
    const isChanged = view.zoomBy(factor, left, top);
    if (isChanged) changed();
    return isChanged;
  }

  function reset() {
    view.reset();
    changed();
  }

  function placeOf(event) {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  function under(event) {
    return grid.nearest(view.place(...placeOf(event)), REACH_PX / view.scale);
  }

  function open(event) {
    if (drawing.here === null) return;
    const { url } = points[drawing.here];
    if (!url) return; // the wiki cannot show this page
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button === 1) window.open(url, "_blank", "noopener");
    else location.assign(url);
  }

  // With the pointer

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    if (!held.size) [isDragged, isTouch, travelled] = [false, event.pointerType === "touch", 0];
    held.set(event.pointerId, placeOf(event));
    canvas.setPointerCapture(event.pointerId);
  });

  canvas.addEventListener("pointermove", (event) => {
    const now = placeOf(event), before = held.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") pointAt(under(event));
      return;
    }
    travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (travelled < CLICK_PX && held.size === 1) return held.set(event.pointerId, now);
    isDragged = true;
    const other = [...held].find(([id]) => id !== event.pointerId)?.[1];
    if (other) zoomBy(distance(now, other) / Math.max(1, distance(before, other)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    const share = other ? 0.5 : 1;
    view.pan((now[0] - before[0]) * share, (now[1] - before[1]) * share);
    held.set(event.pointerId, now);
    changed();
  });

  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => held.delete(event.pointerId));

  canvas.addEventListener("click", (event) => {
    if (isDragged) return;
    const at = under(event), isSecondTouch = at === drawing.here;
    pointAt(at);
    if (!isTouch || isSecondTouch) open(event); // the first touch only shows the title
  });

  canvas.addEventListener("auxclick", (event) => event.button === 1 && open(event));
  tip.addEventListener("mousedown", (event) => event.preventDefault()); // keep the focus on the canvas
  tip.addEventListener("click", open);
  for (const place of [canvas, tip]) place.addEventListener("pointerleave", (event) => {
    const isGone = event.relatedTarget !== canvas && !tip.contains(event.relatedTarget);
    if (isGone && event.pointerType !== "touch" && !canvas.matches(":focus-visible")) pointAt(null);
  });

  plot.addEventListener("wheel", (event) => {
    if (event.shiftKey) return;
    const pixels = event.deltaY * (event.deltaMode ? LINE_PX : 1);
    if (zoomBy(Math.exp(-pixels * (event.ctrlKey ? 5 : 1) * WHEEL), ...placeOf(event))) event.preventDefault(); // at the limit the page scrolls
  }, { passive: false });

  // With keys and buttons

  function step(direction) {
    const among = drawing.found?.size ? [...drawing.found] : points.keys();
    const from = drawing.here === null ? null : points[drawing.here];
    const next = from ? nextIn(points, among, from, direction) : nearestTo(points, among, view);
    if (next === null) return;
    view.reveal(points[next]);
    pointAt(next);
    changed();
  }

  const keys = {
    "+": () => zoomBy(STEP, ...centre()), "=": () => zoomBy(STEP, ...centre()), "-": () => zoomBy(1 / STEP, ...centre()),
    0: reset, Home: reset, Enter: open,
  };

  // The centre of zooming with keys and buttons: the selected point, or the middle.
  function centre() {
    return drawing.here === null ? [] : view.pixel(points[drawing.here]);
  }

  canvas.addEventListener("keydown", (event) => {
    if (event.altKey || ((event.ctrlKey || event.metaKey) && event.key !== "Enter")) return;
    const direction = DIRECTIONS[event.key];
    if (direction && event.shiftKey) {
      view.pan(-direction[0] * PAN_PX, -direction[1] * PAN_PX);
      changed();
    } else if (direction) step(direction);
    else if (keys[event.key]) keys[event.key](event);
    else return;
    event.preventDefault();
  });

  document.addEventListener("keydown", (event) => event.key === "Escape" && pointAt(null));
  canvas.addEventListener("blur", () => pointAt(null));
  buttons.in.addEventListener("click", () => zoomBy(STEP));
  buttons.out.addEventListener("click", () => zoomBy(1 / STEP));
  buttons.reset.addEventListener("click", reset);
  new ResizeObserver(changed).observe(canvas);
}

function distance([left, top], [otherLeft, otherTop]) {
  return Math.hypot(left - otherLeft, top - otherTop);
}

function nearestTo(points, among, { x, y }) {
  return leastBy(among, (at) => Math.hypot(points[at].x - x, points[at].y - y));
}

// The next point in a direction: within 45 degrees, preferably near and straight ahead.
function nextIn(points, among, from, [right, down]) {
  return leastBy(among, (at) => {
    const x = points[at].x - from.x, y = points[at].y - from.y;
    const along = x * right + y * down, aside = Math.abs(x * down) + Math.abs(y * right);
    return along > 0 && aside <= along ? along + 2 * aside : Infinity;
  });
}

function leastBy(numbers, cost) {
  let best = null, least = Infinity;
  for (const at of numbers) {
    const its = cost(at);
    if (its < least) [best, least] = [at, its];
  }
  return best;
}

function showTip(tip, view, point) {
  if (!point) return tip.replaceChildren();
  if (tip.dataset.path !== point.path || !tip.firstChild) {
    const title = Object.assign(document.createElement("strong"), { textContent: point.title });
    const where = Object.assign(document.createElement("span"), { textContent: [point.path, point.category].filter(Boolean).join(" · ") });
    tip.replaceChildren(title, where);
    tip.dataset.path = point.path;
  }
  const [left, top] = view.pixel(point), half = tip.offsetWidth / 2, isAbove = top > tip.offsetHeight + 16;
  tip.classList.toggle("semantic-map-tip-below", !isAbove);
  tip.style.left = `${Math.min(view.width - half, Math.max(half, left))}px`;
  tip.style.top = `${top}px`;
}
