// Links while writing: pages that the text in the editor names, and pages about the same. Nothing is inserted by itself.
import { delayed, element, latest } from "./parts.js";

const PAUSE_MS = 2000;
const panel = document.getElementById("semantic-writing");
const { source, path } = panel.dataset;
const warning = document.getElementById("semantic-existing");
const said = panel.querySelector("[role=status]");
const next = latest();
const later = delayed(ask, PAUSE_MS);
const editor = () => window.cm_editor;
let listed = ""; // the suggestions shown, as JSON

function replace(from, to, insert) {
  editor().dispatch({ changes: { from, to, insert }, selection: { anchor: from + insert.length }, userEvent: "input" });
  editor().focus();
  ask();
}

/** Link a phrase where it was found, or where it has moved to since: the nearest place. */
function linkPhrase({ phrase, start, link }) {
  const text = editor().state.doc.toString();
  const known = [...text].slice(0, start).join("").length; // the wiki counts characters, the editor UTF-16
  const [before, after] = [text.lastIndexOf(phrase, known), text.indexOf(phrase, known)];
  const from = before < 0 || (after >= 0 && after - known < known - before) ? after : before;
  if (from >= 0) replace(from, from + phrase.length, link);
}

const linkTo = ({ url, title }) => element("a", { href: url ?? "", target: "_blank", rel: "noopener", textContent: title });

function entry(page, insert) {
  const isNamed = page.phrase && page.phrase.toLowerCase() !== page.title.toLowerCase();
  const phrase = element("span", { className: "semantic-where", textContent: isNamed ? ` “${page.phrase}”` : "" });
  const button = element("button", { type: "button", className: "btn btn-sm", title: "Add link" }, element("i", { className: "fas fa-plus", ariaHidden: "true" }));
  button.append(element("span", { className: "sr-only", textContent: `Add link ${page.title}` }));
  button.addEventListener("click", insert);
  return element("li", {}, element("span", {}, linkTo(page), phrase), button);
}

const group = (name, entries) => (entries.length ? [element("h3", { textContent: name }), element("ul", {}, ...entries)] : []);

/** Show above the editor which pages may be about the same already. */
function warn(pages) {
  const parts = pages.flatMap((page, at) => [at ? ", " : "This page may already exist: ", linkTo(page)]);
  if (warning.textContent !== parts.map((each) => each.textContent ?? each).join("")) warning.replaceChildren(...parts);
}

function show({ mentions, pages, duplicates = [] }) {
  const insert = (page) => {
    const { from, to } = editor().state.selection.main;
    replace(from, to, page.link);
  };
  const isLinkable = (page) => page.link, like = duplicates.filter(isLinkable);
  const named = mentions.filter(isLinkable);
  const already = new Set(named.map((page) => page.path));
  const near = pages.filter((page) => isLinkable(page) && !page.linked && !already.has(page.path));
  const list = (found) => found.map((page) => entry(page, () => insert(page)));
  const focused = panel.contains(document.activeElement) ? document.activeElement.textContent : "";
  const listing = JSON.stringify([named, near]);
  if (listing !== listed) { // otherwise a click that has begun would be lost
    listed = listing;
    panel.querySelector("div").replaceChildren(
      ...group("Mentioned, not linked yet", named.map((each) => entry(each, () => linkPhrase(each)))),
      ...group("Related pages", list(near)),
    );
  }
  const beside = document.getElementById("extra-nav"); // which narrow windows have no room for
  const place = beside?.checkVisibility() ? beside : document.getElementById("column-main");
  if (panel.parentElement !== place) place?.append(panel);
  const number = panel.querySelectorAll("li").length;
  panel.hidden = !number;
  warn(like);
  if (focused) [...panel.querySelectorAll("a, button")].find((each) => each.textContent === focused)?.focus();
  const text = number ? `${number} page${number === 1 ? "" : "s"} to link to` : "";
  if (said.textContent !== text) said.textContent = text;
}

async function ask() {
  later.stop();
  const signal = next();
  const { doc, selection } = editor().state;
  const text = doc.toString().trim() ? doc.toString() : `# ${path.split("/").pop().replace(/[-_]/g, " ")}`; // a new page has only its name
  const body = JSON.stringify({ text, path, cursor: Math.min([...text].length, [...text.slice(0, selection.main.head)].length) });
  try {
    const headers = { "Content-Type": "application/json" };
    const reply = await fetch(source, { method: "POST", headers, body, signal, redirect: "error" });
    if (reply.ok && !signal.aborted) show(await reply.json());
  } catch {} // the wiki cannot be reached: what is shown stays
}

function start() {
  if (!editor()) return;
  document.getElementById("editor_split")?.before(warning);
  document.addEventListener("cm6change", later);
  ask();
}

if (editor()) start();
else document.addEventListener("DOMContentLoaded", () => setTimeout(start));
