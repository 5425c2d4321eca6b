// Draws the map, at most once per frame and only after changes.
import { labelOrder, labels } from "./map_labels.js";
import { Sheet, stampOf } from "./map_stamps.js";

const LEAST_RADIUS = 2.25, MOST_RADIUS = 7, DENSITY = 0.16, DIMMED = 0.22, FOUND_LARGER = 1.6, LEAST_FOUND = 5;

export class Drawing {
  constructor(canvas, points, view, covering, drawn) {
    Object.assign(this, { canvas, points, view, covering, drawn }); // what is covered has no labels
    this.context = canvas.getContext("2d", { willReadFrequently: true }); // its pixels are computed here
    this.order = labelOrder(points);
    this.left = new Float32Array(points.length);
    this.top = new Float32Array(points.length);
    this.groups = [];
    this.found = null; // indices of the points found; null without a search
    this.here = null; // index of the selected point
    this.frame = 0;
    this.recolour();
    new ResizeObserver(() => this.resize()).observe(canvas);
    addEventListener("resize", () => this.resize()); // browser zoom changes the pixels
    new MutationObserver(() => this.recolour()).observe(document.body, { attributeFilter: ["class"] });
  }

  set(values) {
    Object.assign(this, values);
    this.change();
  }

  recolour() {
    const style = getComputedStyle(this.canvas), known = new Map();
    this.font = `12px ${style.fontFamily}`;
    this.colour = (name) => {
      if (!known.has(name)) known.set(name, style.getPropertyValue(name).trim());
      return known.get(name);
    };
    this.forget();
  }

  // Discards everything drawn with other colours or pixels.
  forget() {
    this.stamps = new Map();
    this.sheet = null;
    this.change();
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    if (!clientWidth) return;
    this.ratio = devicePixelRatio;
    Object.assign(this.view, { width: clientWidth, height: clientHeight });
    Object.assign(this.canvas, { width: Math.round(clientWidth * this.ratio), height: Math.round(clientHeight * this.ratio) });
    this.forget();
  }

  change() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (this.ratio) this.paint();
    });
  }

  get radius() {
    const { width, height, zoom } = this.view;
    const wanted = Math.sqrt((width * height) / this.points.length) * zoom * DENSITY;
    return Math.round(Math.min(MOST_RADIUS, Math.max(LEAST_RADIUS, wanted)) * 4) / 4;
  }

  paint() {
    const { context, found, radius, ratio } = this;
    this.sheet ??= new Sheet(this.canvas.width, this.canvas.height, this.colour("--semantic-map-ground"));
    this.sheet.clear();
    this.place();
    for (const group of this.groups) this.stamp(group, group.at, { radius, opacity: found ? DIMMED : 1 });
    if (found) for (const group of this.groups) this.stamp(group, group.at.filter((at) => found.has(at)), { radius: this.foundRadius, isFound: true });
    context.putImageData(this.sheet.image, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paintLabels();
    if (this.here !== null) this.paintHere();
    this.drawn(this.seen.length);
  }

  get foundRadius() {
    return Math.max(LEAST_FOUND, this.radius * FOUND_LARGER);
  }

  // Computes the positions of the points, and which of them are visible.
  place() {
    const { points, view, left, top } = this, { scale, width, height } = view;
    this.seen = [];
    for (const at of this.order) {
      const x = (left[at] = (points[at].x - view.x) * scale + width / 2);
      const y = (top[at] = (points[at].y - view.y) * scale + height / 2);
      if (x >= 0 && y >= 0 && x <= width && y <= height) this.seen.push(at);
    }
  }

  stamp(group, numbers, look) {
    const stamp = this.stampFor(group, look);
    for (const at of numbers) this.sheet.put(stamp, this.left[at] * this.ratio, this.top[at] * this.ratio);
  }

  stampFor(group, { radius, opacity = 1, isFound = false }) {
    const key = [group.colour, group.path, radius, opacity, isFound].join(" ");
    if (!this.stamps.has(key)) {
      const size = radius * this.ratio, path = new Path2D(group.path);
      this.stamps.set(key, stampOf(size * 1.5 + this.ratio, (context) => {
        context.scale(size, size);
        context.globalAlpha = opacity;
        context.fillStyle = this.colour(group.colour);
        context.strokeStyle = this.colour(isFound ? "--semantic-text" : "--semantic-map-ground");
        context.lineWidth = (isFound ? 1.5 : 0.75) / radius;
        context.fill(path);
        context.stroke(path);
      }));
    }
    return this.stamps.get(key);
  }

  paintLabels() {
    const { context, found, view } = this, chosen = found ? this.seen.filter((at) => found.has(at)) : this.seen;
    context.font = this.font;
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 3;
    context.strokeStyle = this.colour("--semantic-map-ground");
    context.fillStyle = this.colour("--semantic-text");
    const radius = found ? this.foundRadius : this.radius, pixelOf = (at) => [this.left[at], this.top[at]];
    for (const { text, left, top } of labels(context, this.points, chosen, { ...view, pixelOf, radius, covered: this.covered })) {
      context.strokeText(text, left, top);
      context.fillText(text, left, top);
    }
  }

  // The part of the canvas below the buttons.
  get covered() {
    const { offsetLeft: left, offsetTop: top, offsetWidth, offsetHeight } = this.covering;
    return { left, top, right: left + offsetWidth, bottom: top + offsetHeight };
  }

  paintHere() {
    const { context } = this;
    context.beginPath();
    context.arc(this.left[this.here], this.top[this.here], (this.found ? this.foundRadius : this.radius) + 4, 0, 2 * Math.PI);
    context.strokeStyle = this.colour("--semantic-on");
    context.lineWidth = 2.5;
    context.stroke();
  }
}
