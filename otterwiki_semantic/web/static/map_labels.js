// Labels: as many titles as fit next to their points, those of pages higher up in the wiki first.
const ROOM_PX = 11_000, TRIED = 500, OBSTACLES = 300, LONGEST = 32, FONT_PX = 12, HEIGHT = 15, DESCENT = 3.5, EDGE = 4, FOUND_LARGER = 1.5, FEW = 12, SPARSE = 40, NAME_PX = 14;
const pen = document.createElement("canvas").getContext("2d");
const overlaps = (one, other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
const within = (one, other) => one.left >= other.left && one.right <= other.right && one.top >= other.top && one.bottom <= other.bottom;

function around(x, y, radius) {
  return { left: x - radius, right: x + radius, top: y - radius, bottom: y + radius };
}

// Returns where a text may be: right and left of a point, above and below it, and beginning or ending there.
function spots(x, y, width, gap) {
  const corners = [[x + gap, y - HEIGHT / 2], [x - gap - width, y - HEIGHT / 2], [x - width / 2, y - gap - HEIGHT], [x - width / 2, y + gap]];
  for (const left of [x, x - width]) corners.push([left, y - gap - HEIGHT], [left, y + gap]);
  return corners.map(([left, top]) => ({ left, top, right: left + width, bottom: top + HEIGHT }));
}

// Returns a title that fits, cut between words if there are any.
function shortened(title) {
  return title.length <= LONGEST ? title : `${title.slice(0, LONGEST).replace(/\s+\S*$/, "")}…`;
}

// Puts labels into a group of the picture: of the selected point and the few found in any case, of others as far as there is room.
// They leave room for the names of groups, which are in the picture already.
export function placeLabels(labels, names, points, { view, scale, pixel, place }, { here, found, radius }) {
  const room = { left: view.left + EDGE, right: view.right - EDGE, top: view.top + EDGE, bottom: view.bottom - EDGE };
  const seen = points.filter((point) => within(around(...pixel(point), 0), view));
  const taken = seen.length > OBSTACLES ? [] : seen.map((point) => around(...pixel(point), radius));
  const written = [];
  const meets = (those) => (spot) => those.some((other) => overlaps(spot, other));
  names.setAttribute("font-size", NAME_PX / scale);
  names.classList.toggle("semantic-map-off", Boolean(found));
  for (const name of found ? [] : names.children) { // the largest groups come first
    name.classList.remove("semantic-map-off");
    const box = name.getBoundingClientRect();
    if (meets(written)(box)) name.classList.add("semantic-map-off");
    else written.push(box);
  }
  taken.push(...written);
  const most = seen.length <= SPARSE ? SPARSE : Math.ceil((view.width * view.height) / ROOM_PX / (seen.length > OBSTACLES ? 2 : 1));
  const gap = (found ? FOUND_LARGER : 1) * radius + 4;
  const chosen = found ? seen.filter((point) => found.has(point)) : seen;
  const texts = [];
  pen.font = `${FONT_PX}px ${getComputedStyle(labels).fontFamily}`;
  for (const point of new Set([...(here ? [here] : []), ...chosen.slice(0, TRIED)])) {
    if (texts.length >= most) break;
    const text = shortened(point.title), width = pen.measureText(text).width;
    const free = spots(...pixel(point), width, point === here ? gap + 6 : gap).filter((spot) => within(spot, room));
    const spot = free.find((each) => !meets(taken)(each)) ?? (point === here || found?.size <= FEW ? free.find((each) => !meets(written)(each)) ?? free[0] : null);
    if (!spot) continue;
    taken.push(spot);
    written.push(spot);
    const label = document.createElementNS(labels.namespaceURI, "text");
    const { x, y } = place([spot.left, spot.bottom - DESCENT]);
    label.textContent = text;
    label.setAttribute("x", x);
    label.setAttribute("y", y);
    label.classList.toggle("semantic-map-chosen", point === here);
    texts.push(label);
  }
  labels.setAttribute("font-size", FONT_PX / scale);
  labels.replaceChildren(...texts.reverse()); // the selected one last, on top
}
