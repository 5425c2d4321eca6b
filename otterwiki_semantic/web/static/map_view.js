// The visible part of the map: its centre and zoom. Positions are 0 to 1; pixels are CSS pixels of the canvas.
const MOST = 128, EDGE = 32, LEAST_SPAN = 0.01;

export class View {
  constructor(points) {
    const xs = points.map((point) => point.x), ys = points.map((point) => point.y);
    this.left = least(xs);
    this.right = -least(xs.map((x) => -x));
    this.top = least(ys);
    this.bottom = -least(ys.map((y) => -y));
    this.width = this.height = 1;
    this.reset();
  }

  reset() {
    this.zoom = 1;
    this.x = (this.left + this.right) / 2;
    this.y = (this.top + this.bottom) / 2;
  }

  // Pixels per unit of the map.
  get scale() {
    const across = (this.width - 2 * EDGE) / Math.max(this.right - this.left, LEAST_SPAN);
    const down = (this.height - 2 * EDGE) / Math.max(this.bottom - this.top, LEAST_SPAN);
    return Math.max(1, Math.min(across, down)) * this.zoom;
  }

  pixel(point) {
    const { scale } = this;
    return [(point.x - this.x) * scale + this.width / 2, (point.y - this.y) * scale + this.height / 2];
  }

  place(left, top) {
    const { scale } = this;
    return { x: (left - this.width / 2) / scale + this.x, y: (top - this.height / 2) / scale + this.y };
  }

  pan(right, down) {
    this.x = Math.min(this.right, Math.max(this.left, this.x - right / this.scale));
    this.y = Math.min(this.bottom, Math.max(this.top, this.y - down / this.scale));
  }

  // Zooms around a pixel, which stays in place; returns whether anything changed.
  zoomBy(factor, left = this.width / 2, top = this.height / 2) {
    const zoom = Math.min(MOST, Math.max(1, this.zoom * factor));
    if (zoom === this.zoom) return false;
    if (zoom === 1) return this.reset(), true;
    const { x, y } = this.place(left, top);
    this.zoom = zoom;
    const [movedLeft, movedTop] = this.pixel({ x, y });
    this.pan(left - movedLeft, top - movedTop);
    return true;
  }

  // Moves a point into the visible part.
  reveal(point) {
    const [left, top] = this.pixel(point);
    const isSeen = left > EDGE && top > EDGE && left < this.width - EDGE && top < this.height - EDGE;
    if (!isSeen) this.pan(this.width / 2 - left, this.height / 2 - top);
  }
}

function least(numbers) {
  return numbers.reduce((a, b) => Math.min(a, b), Infinity);
}
