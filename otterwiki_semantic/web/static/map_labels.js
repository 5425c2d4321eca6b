// Labels: as many titles as fit next to their points, those of pages higher up in the wiki first.
const ROOM_PX = 11_000, ROOM_AMID_MANY_PX = 24_000, TRIED = 500, OBSTACLES = 300, LONGEST = 32, HEIGHT = 15;

export function labelOrder(points) {
  const depth = points.map((point) => point.path.split("/").length);
  const spread = (at) => Math.imul(at + 1, 0x9e3779b1) >>> 0; // neighbours in the alphabet are often neighbours on the map
  return points.map((_, at) => at).sort((a, b) => depth[a] - depth[b] || spread(a) - spread(b));
}

function overlaps(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

function spots(left, top, width, radius) {
  const gap = radius + 4, half = HEIGHT / 2;
  const corners = [[left + gap, top - half], [left - gap - width, top - half], [left - width / 2, top - gap - HEIGHT], [left - width / 2, top + gap]];
  return corners.map(([x, y]) => ({ left: x, top: y, right: x + width, bottom: y + HEIGHT }));
}

// Returns a title that fits, cut between words if there are any.
function shortened(title) {
  if (title.length <= LONGEST) return title;
  const cut = title.slice(0, LONGEST - 1);
  const space = /\s/.test(title[LONGEST - 1]) ? cut.length : cut.search(/\s\S*$/);
  return `${cut.slice(0, space > 0 ? space : cut.length).trimEnd()}…`;
}

// Returns titles with their positions. `seen` are the indices of visible points, most important first; `pixelOf` returns a position.
export function labels(context, points, seen, { pixelOf, radius, width, height, covered }) {
  const taken = [covered], placed = [], isSparse = seen.length <= OBSTACLES;
  const most = Math.ceil((width * height) / (isSparse ? ROOM_PX : ROOM_AMID_MANY_PX));
  if (isSparse) {
    for (const at of seen) {
      const [x, y] = pixelOf(at);
      taken.push({ left: x - radius, right: x + radius, top: y - radius, bottom: y + radius });
    }
  }
  for (const at of seen.slice(0, TRIED)) {
    if (placed.length >= most) break;
    const text = shortened(points[at].title);
    const around = spots(...pixelOf(at), context.measureText(text).width, radius);
    const spot = around.find((each) => (
      each.left >= 0 && each.top >= 0 && each.right <= width && each.bottom <= height && !taken.some((other) => overlaps(each, other))
    ));
    if (!spot) continue;
    taken.push(spot);
    placed.push({ text, left: spot.left, top: spot.top + HEIGHT / 2 });
  }
  return placed;
}
