// A spatial grid, to find the point under the pointer without a scan of all points.
const POINTS_A_CELL = 2;

export class Grid {
  constructor(points) {
    this.points = points;
    this.side = Math.max(1, Math.floor(Math.sqrt(points.length / POINTS_A_CELL)));
    this.cells = new Map();
    points.forEach((point, at) => {
      const key = this.column(point.x) * this.side + this.column(point.y);
      if (!this.cells.has(key)) this.cells.set(key, []);
      this.cells.get(key).push(at);
    });
  }

  column(part) {
    return Math.min(this.side - 1, Math.max(0, Math.floor(part * this.side)));
  }

  // Returns the index of the nearest point within `reach`; null if there is none.
  nearest({ x, y }, reach) {
    let best = null, least = reach;
    for (let column = this.column(x - reach); column <= this.column(x + reach); column++) {
      for (let row = this.column(y - reach); row <= this.column(y + reach); row++) {
        for (const at of this.cells.get(column * this.side + row) ?? []) {
          const away = Math.hypot(this.points[at].x - x, this.points[at].y - y);
          if (away <= least) [best, least] = [at, away];
        }
      }
    }
    return best;
  }
}
