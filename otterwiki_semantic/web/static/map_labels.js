// Labels: as many titles as fit next to their points, in one line or two, those of pages higher up in the wiki first.
const ROOM_PX = 11_000, TRIED = 500, OBSTACLES = 2000, LONGEST = 32, GAP_PX = [4, 1], SIDES = 4, FONT_PX = 12, HEIGHT = 14, APART_PX = [10, 6], NEARER_PX = 10, ALONG = [1, 2, 3, 4, 5, 6, 7].map((part) => part / 8), DESCENT = 3.5, EDGE = 4, FOUND_LARGER = 1.5, HERE_LARGER = 2.6, SPARSE = 40, TWO_LINES = 300, NAME_PX = 14, NAMED = 4, NAME_STEP_PX = [24, 16], NAME_REACH = 5, CLEAR_PX = 18, CROWDED = 2, NAME_COLOUR = "70%";
const ORDERS = [() => 0, ...[[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1], [1, -1], [-1, 1]].map(([x, y]) => (one, other) => x * (one.x - other.x) + y * (one.y - other.y))];
const pen = document.createElement("canvas").getContext("2d");
const shared = (one, other) => Math.max(0, Math.min(one.right, other.right) - Math.max(one.left, other.left)) * Math.max(0, Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top));
const within = (one, other) => one.left >= other.left && one.right <= other.right && one.top >= other.top && one.bottom <= other.bottom;

const distance = ({ left, right, top, bottom }, x, y) => Math.sqrt(Math.max(left - x, 0, x - right) ** 2 + Math.max(top - y, 0, y - bottom) ** 2); // hypot is slow

function around(x, y, radius, high = radius) {
  return { left: x - radius, right: x + radius, top: y - high, bottom: y + high };
}

// Returns where a text may be: to the right of a point, to the left, above or below it; above and below moved into the room.
function spots(x, y, width, height, radius, room) {
  const [aside, above] = GAP_PX.map((gap) => radius + gap), middle = Math.max(room.left, Math.min(x - width / 2, room.right - width));
  const corners = [[x + aside, y - height / 2], [x - aside - width, y - height / 2], [middle, y - above - height], [middle, y + above]];
  return corners.map(([left, top], side) => ({ side, left, top, right: left + width, bottom: top + height }));
}

// Returns where the name of a group may be: near the middle of its points that are in the room, nearer to them than to others, and on none; the best place first.
function namingSpots(places, others, width, room) {
  const [x, y] = [0, 1].map((axis) => places.map((place) => place[axis]).sort((one, other) => one - other)[places.length >> 1]);
  const steps = Array.from({ length: 2 * NAME_REACH + 1 }, (_, at) => at - NAME_REACH), [across, down] = NAME_STEP_PX;
  const spots = steps.flatMap((step) => steps.map((below) => around(x + step * across, y + below * down, width / 2, HEIGHT / 2))).filter((spot) => within(spot, room));
  const area = areaOf(spots, NAME_STEP_PX[0]), strangers = others.filter((point) => isIn(area, point));
  const nearest = (spot, points) => points.reduce((least, point) => Math.min(least, distance(spot, point[0], point[1])), Infinity);
  const cost = (spot) => Math.hypot((spot.left + spot.right) / 2 - x, (spot.top + spot.bottom) / 2 - y) + CROWDED * Math.max(0, CLEAR_PX - nearest(spot, places));
  return spots.filter((spot) => nearest(spot, places) <= nearest(spot, strangers)).map((spot) => ({ ...spot, side: 0, cost: cost(spot) })).sort((one, other) => one.cost - other.cost);
}

// Returns a title that fits, cut between words if there are any.
function shortened(title, most) {
  return title.length <= most ? title : `${title.slice(0, most).replace(/\s+\S*$/, "")}…`;
}

// Returns a text in two lines, divided between words near its middle; in one line if it is a word.
function halved(text) {
  const middle = text.length / 2, gaps = [...text.matchAll(/ /g)].map(({ index }) => index), away = (at) => Math.abs(at - middle);
  const at = gaps.length ? gaps.reduce((one, other) => (away(other) < away(one) ? other : one)) : text.length;
  return [text.slice(0, at), text.slice(at + 1)].filter(Boolean);
}

const isIn = ({ left, right, top, bottom }, at) => at[0] > left && at[0] < right && at[1] > top && at[1] < bottom; // taking a list apart is slow

// Returns the area of spots, with a margin: what is outside of it is in nobody's way.
function areaOf(spots, margin) {
  const end = (most, side) => most(...spots.map((spot) => spot[side]));
  return { left: end(Math.min, "left") - margin, right: end(Math.max, "right") + margin, top: end(Math.min, "top") - margin, bottom: end(Math.max, "bottom") + margin };
}

// Returns a spot for each of the points, in this order, if there is one: clear of all points or, for highlighted points, of the other highlighted ones; the freest spot for the `main` one, which always has one.
function arranged(points, most, spotsOf, obstacles, { clearOf, isLit, main }) {
  const taken = [...obstacles], placed = [];
  for (const point of points) {
    if (placed.length >= most) break;
    const spots = spotsOf(point), [isClear, covered] = clearOf(spots), isFree = (spot) => !taken.some((other) => shared(spot, other));
    const freest = (among) => among.map((spot) => [spot, covered(spot, taken)]).sort(([, one], [, other]) => one - other)[0]?.[0];
    const free = spots.filter(isFree);
    const spot = free.find((each) => isClear(each)) ?? (isLit(point) ? freest(free.filter((each) => isClear(each, isLit))) ?? freest(free.filter((each) => isClear(each, isLit, false))) : null) ?? (point === main ? freest(spots) : null);
    if (!spot) continue;
    const [aside, above] = APART_PX; // else two labels read as one
    taken.push({ left: spot.left - aside, right: spot.right + aside, top: spot.top - above, bottom: spot.bottom + above });
    placed.push(spot);
  }
  return placed;
}

// Puts labels into a group of the picture, as far as there is room: of the selected point and the near ones first, or of those found. The name of a group stands near the middle of its points, or only in the legend.
// No other point is about as near to a label as its own: such a label is left out. Found and near pages may cover others, which are dimmed; if need be, their labels may be as near to another one of them.
// While pages are found, others have none; while a page is selected, those of others than the near ones are quiet.
// They leave room for the lines. While a page is selected, a label keeps its side of the point, and while zooming in its place in the order.
let last = { points: new Set(), scale: 0 };
export function placeLabels(labels, points, { view, scale, pixel, place }, { names = [], here, near, found, radius, covered }) {
  const room = { left: view.left + EDGE, right: view.right - EDGE, top: view.top + EDGE, bottom: view.bottom - EDGE };
  const seen = points.filter((point) => within(around(...pixel(point), 0), view));
  const taken = [...covered];
  for (const point of near) {
    const [[x, y], [left, top]] = [here, point].map(pixel);
    for (const share of ALONG) taken.push(around(x + share * (left - x), y + share * (top - y), 1));
  }
  const isSparse = seen.length <= SPARSE, isFound = (point) => Boolean(found?.has(point)); // all may fit
  const orders = isSparse && !found ? ORDERS : [ORDERS[0]];
  const waysOf = ({ title, suffix = "" }) => {
    const text = shortened(title, LONGEST) + suffix;
    return seen.length > TWO_LINES ? [[text]] : [[text], halved(text)];
  };
  const most = isSparse ? SPARSE : Math.ceil((view.width * view.height) / ROOM_PX);
  const isCrowd = seen.length > OBSTACLES, chosen = (found ? [...found].filter((point) => seen.includes(point)) : isCrowd ? [] : seen).slice(0, TRIED);
  const { fontFamily } = getComputedStyle(labels), membersOf = (name) => seen.filter(({ group }) => group === name.group), named = found ? [] : names.filter((name) => membersOf(name).length >= NAMED), isName = (point) => names.includes(point);
  const sizeOf = (point) => (isName(point) ? NAME_PX : FONT_PX), weightOf = (point) => (isName(point) || isFound(point) ? 700 : 400);
  const isLit = (point) => point === here || near.includes(point) || isFound(point), sizeUp = (point) => (point === here ? HERE_LARGER : isFound(point) ? FOUND_LARGER : 1);
  const kept = found || scale < last.scale ? [] : [...last.points].filter((point) => named.includes(point) || seen.includes(point)), isKept = new Set(kept);
  const spotsOf = (point) => waysOf(point).flatMap((lines) => {
    pen.font = `${weightOf(point)} ${sizeOf(point)}px ${fontFamily}`;
    const width = Math.max(...lines.map((line) => pen.measureText(line).width));
    if (isName(point)) return lines.length > 1 ? [] : namingSpots(membersOf(point).map(pixel), marks.filter(([{ group }]) => group !== point.group).map(([, at]) => at), width, room).map((spot) => ({ ...spot, lines, point }));
    return spots(...pixel(point), width, HEIGHT * lines.length, radius * sizeUp(point), room).filter((spot) => within(spot, room)).map((spot) => ({ ...spot, side: spot.side + SIDES * (lines.length - 1), lines, point }));
  }).sort((one, other) => preference(one) - preference(other));
  const preference = ({ side, point }) => (side === point.side && (here || found || isKept.has(point)) ? -1 : side % SIDES);
  const marks = (isCrowd ? chosen : seen).map((point) => [point, pixel(point)]);
  const clearOf = (spots) => {
    const area = areaOf(spots, NEARER_PX + HERE_LARGER * radius + GAP_PX[0]), close = marks.filter((mark) => isIn(area, mark[1]));
    const isClear = (spot, isRival = () => true, isApart = true) => {
      const least = isName(spot.point) ? radius + GAP_PX[1] : isApart ? NEARER_PX + distance(spot, ...pixel(spot.point)) : radius * FOUND_LARGER + GAP_PX[1];
      return close.every(([point, [x, y]]) => point === spot.point || !isRival(point) || distance(spot, x, y) >= least);
    };
    const covered = (spot, taken) => taken.concat(close.map(([, at]) => around(...at, radius))).reduce((sum, other) => sum + shared(spot, other), 0);
    return [isClear, covered];
  };
  const steady = kept.filter((point) => isName(point) || spotsOf(point)[0]?.side === point.side); // others change sides, and must not take their places
  let placed = [];
  for (const order of orders) {
    const fitting = arranged(new Set([...(here ? [here] : []), ...near, ...named, ...steady, ...kept, ...[...chosen].sort(order)]), most, spotsOf, taken, { clearOf, isLit, main: here ?? (found && chosen[0]) });
    if (fitting.length > placed.length) placed = fitting;
    if (placed.length >= chosen.length) break;
  }
  const drawn = (tag, facts, ...content) => {
    const made = document.createElementNS(labels.namespaceURI, tag);
    for (const [name, value] of Object.entries(facts)) made.setAttribute(name, value);
    made.append(...content);
    return made;
  };
  const texts = placed.map(({ lines, point, side, left, right, top }) => {
    if (!here && !found) point.side = side;
    const [middle] = isName(point) ? [(left + right) / 2] : pixel(point), [anchor, across] = right < middle ? ["end", right] : left > middle ? ["start", left] : ["middle", (left + right) / 2];
    const parts = lines.map((line, at) => drawn("tspan", place([across, top + HEIGHT * (at + 1) - DESCENT]), at < lines.length - 1 ? `${line} ` : line));
    const label = drawn("text", { "text-anchor": anchor, "font-size": sizeOf(point) / scale, "font-weight": weightOf(point) }, ...parts);
    if (isName(point)) label.style.fill = `color-mix(in srgb, ${point.group.getAttribute("stroke")} ${NAME_COLOUR}, currentColor)`;
    label.classList.toggle("semantic-map-chosen", point === here);
    label.classList.toggle("semantic-quiet", Boolean(here) && point !== here && !near.includes(point) && !isFound(point));
    return label;
  });
  if (!found && !here) last = { scale, points: new Set(placed.map(({ point }) => point)) };
  labels.replaceChildren(...texts.reverse()); // the selected one last, on top
}
