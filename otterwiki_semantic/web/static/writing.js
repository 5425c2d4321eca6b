// Links while writing: pages that the text in the editor names, and pages about the same. Nothing is inserted by itself.
const PAUSE_MS = 2000;
const panel = document.getElementById("semantic-writing");
const { source, path, style } = panel.dataset;
const said = panel.querySelector("[role=status]");
let waiting = 0; // a timer
let asked = null; // aborts the request in progress

const editor = () => window.cm_editor;
const made = (tag, properties, ...content) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...content);
  return element;
};

/** Put the panel beside the editor, or below it where there is no room. */
function place() {
  const beside = document.getElementById("extra-nav");
  const wanted = beside?.checkVisibility() ? beside : document.getElementById("column-main");
  if (panel.parentElement !== wanted) wanted?.append(panel);
}

/** Return a link in the wiki's syntax; null if the names do not allow one. */
function wikiLink(target, text) {
  if (/[[\]|\n]/.test(target + text)) return null;
  if (text === target) return `[[${target}]]`;
  return `[[${style === "LINKTITLE" ? `${target}|${text}` : `${text}|${target}`}]]`;
}

function replace(from, to, insert) {
  editor().dispatch({ changes: { from, to, insert }, selection: { anchor: from + insert.length }, userEvent: "input" });
  editor().focus();
  ask();
}

/** Link a phrase where it was found, or where it has moved to since. */
function link({ phrase, start, path: target }) {
  const text = editor().state.doc.toString();
  const known = [...text].slice(0, start).join("").length; // the wiki counts characters, the editor UTF-16
  const from = text.startsWith(phrase, known) ? known : text.indexOf(phrase);
  if (from >= 0) replace(from, from + phrase.length, wikiLink(target, phrase));
}

function entry(page, note, label, insert) {
  const title = made("a", { href: page.url ?? "", target: "_blank", rel: "noopener", textContent: page.title });
  const button = made("button", { type: "button", className: "btn btn-sm", textContent: label });
  button.append(made("span", { className: "sr-only", textContent: ` ${page.title}` }));
  button.addEventListener("click", insert);
  return made("li", {}, ...(note ? [made("span", { className: "semantic-phrase", textContent: note }), " → "] : []), title, " ", button);
}

function group(name, entries) {
  return entries.length ? [made("h3", { textContent: name }), made("ul", {}, ...entries)] : [];
}

function show({ mentions, pages, duplicates = [] }) {
  const insert = (page) => {
    const { from, to } = editor().state.selection.main;
    replace(from, to, wikiLink(page.path, page.title));
  };
  const isLinkable = (page) => page.url && wikiLink(page.path, page.title);
  const named = mentions.filter((each) => each.url && wikiLink(each.path, each.phrase));
  const already = new Set([...duplicates, ...named].map((page) => page.path));
  const near = pages.filter((page) => isLinkable(page) && !page.linked && !already.has(page.path));
  const list = (found) => found.map((page) => entry(page, "", "Insert link", () => insert(page)));
  panel.querySelector("div").replaceChildren(
    ...group("Already there?", list(duplicates.filter(isLinkable))),
    ...group("Named here", named.map((each) => entry(each, each.phrase === each.title ? "" : each.phrase, "Link", () => link(each)))),
    ...group("About the same", list(near)),
  );
  place();
  const number = panel.querySelectorAll("li").length;
  panel.hidden = !number;
  const text = number ? `${number} page${number === 1 ? "" : "s"} to link to` : "";
  if (said.textContent !== text) said.textContent = text;
}

async function ask() {
  clearTimeout(waiting);
  asked?.abort();
  const mine = (asked = new AbortController());
  const { doc, selection } = editor().state;
  const text = doc.toString();
  if (!text.trim()) return show({ mentions: [], pages: [] });
  const body = JSON.stringify({ text, path, cursor: [...text.slice(0, selection.main.head)].length });
  try {
    const headers = { "Content-Type": "application/json" };
    const reply = await fetch(source, { method: "POST", headers, body, signal: mine.signal, redirect: "error" });
    if (reply.ok && !mine.signal.aborted) show(await reply.json());
  } catch {
    // the wiki cannot be reached: what is shown stays
  }
}

function later() {
  clearTimeout(waiting);
  waiting = setTimeout(ask, PAUSE_MS);
}

function start() {
  if (!editor()) return;
  document.addEventListener("cm6change", later);
  later();
}

if (editor()) start();
else document.addEventListener("DOMContentLoaded", () => setTimeout(start));
