// Groups of pages, by folder or category, with a colour of the stylesheet and a shape each.
const MOST = 8;
const PATHS = {
  circle: "M1 0A1 1 0 1 1-1 0A1 1 0 1 1 1 0Z",
  square: "M-.9-.9H.9V.9H-.9Z",
  triangle: "M0-1.2L1.15.85H-1.15Z",
  diamond: "M0-1.3L1.3 0L0 1.3L-1.3 0Z",
  cross: "M-1.1-.4H-.4V-1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1Z",
};
const SHAPES = ["circle", "square", "triangle", "diamond"].map((name) => PATHS[name]);
const GREY = "--semantic-map-grey";
const NAMELESS = { folder: "no folder", category: "no category", cluster: "no group" };
const FLAT = 0.5; // at most this share of the pages has a folder that some others have not

/** Return what to colour by at first: clusters of meaning if there are some, and folders tell little. */
export function firstChoice(points) {
  const sizes = new Map();
  for (const { folder } of points) if (folder) sizes.set(folder, (sizes.get(folder) ?? 0) + 1);
  const inFolders = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  const isFlat = inFolders <= FLAT * points.length || Math.max(...sizes.values()) === points.length;
  return isFlat && points.some((point) => point.cluster) ? "cluster" : "folder";
}

// Returns the groups, largest first; pages without a group, and groups beyond the colours, are grey.
export function groupsOf(points, by) {
  const members = new Map();
  points.forEach((point, at) => {
    const name = point[by] || "";
    if (!members.has(name)) members.set(name, []);
    members.get(name).push(at);
  });
  const nameless = members.get("") ?? [];
  members.delete("");
  const named = [...members].sort(([a, as], [b, bs]) => bs.length - as.length || (a < b ? -1 : 1));
  const coloured = named.slice(0, MOST).map(([name, at], number) => (
    { name, at, colour: `--semantic-map-${number + 1}`, path: SHAPES[number % SHAPES.length] }
  ));
  const rest = named.slice(MOST).flatMap(([, at]) => at);
  return [
    ...coloured,
    { colour: GREY, name: `others (${named.length - MOST})`, at: rest, path: PATHS.cross },
    { colour: GREY, name: NAMELESS[by], at: nameless, path: PATHS.circle },
  ].filter((group) => group.at.length);
}

export function isGrey(group) {
  return group.colour === GREY;
}

export function numeral(number) {
  return number.toLocaleString("en");
}

function sampleOf(group) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS(svg.namespaceURI, "path");
  svg.setAttribute("viewBox", "-1.5 -1.5 3 3");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", group.path);
  path.style.setProperty("fill", `var(${group.colour})`);
  svg.append(path);
  return svg;
}

// Shows the groups as a list.
export function showLegend(list, groups) {
  list.replaceChildren(...groups.map((group) => {
    const item = document.createElement("li");
    const count = Object.assign(document.createElement("span"), { className: "semantic-count", textContent: numeral(group.at.length) });
    item.append(sampleOf(group), `${group.name} `, count);
    return item;
  }));
}
