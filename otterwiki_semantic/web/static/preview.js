// A preview of the page beside the results, at the passage that is pointed at or chosen.
import { delayed, element, fetchPart } from "./parts.js";

const BLOCKS = ":is(p, li:not(:has(> p)), pre, tr:has(td), dd):not(li:not(:has(> p)) *, dd *, td *)";
const CUT = 20; // letters by which a block is known that an excerpt may cut
const pages = new Map(); // what was loaded, by URL
const later = delayed(preview, 150);
let shown = null; // the passage that is shown

/** Show the page of a passage, a link with `data-preview`, in a pane; nothing without a passage. */
export async function preview(pane, passage) {
  later.stop();
  select(shown, passage);
  shown = passage;
  if (pane.hidden) pane.replaceChildren(element("p", { textContent: "Loading…" }));
  const source = passage?.dataset.preview;
  pane.hidden = !source; // its place is kept from the beginning
  if (!source) return;
  const content = pages.get(source) ?? (await loaded(source).catch(() => null));
  if (shown !== passage) return; // another one was chosen meanwhile
  pane.hidden = !content; // the wiki cannot be reached
  if (!content) return;
  if (pages.size > 19) pages.clear(); // a few are enough to go back and forth
  if (!content.querySelector(".semantic-code")) pages.set(source, content); // what is shown as source may be rendered next time
  pane.replaceChildren(content.cloneNode(true));
  show(pane, passage);
}

/** Give another passage the look of the one that is shown or chosen. */
export function select(before, now) {
  before?.classList.remove("semantic-chosen");
  now?.classList.add("semantic-chosen");
}

/** Show the page of a passage after a moment, unless another one is wanted until then. */
export function previewSoon(pane, passage) {
  later.stop();
  if (passage !== shown) later(pane, passage);
}

async function loaded(source) {
  const { content } = await fetchPart(source);
  tidy(content);
  const [title, first] = content.querySelectorAll("h1,h2");
  if (first && first.textContent.trim() === title.textContent.trim()) first.hidden = true;
  for (const each of content.querySelectorAll("[id]")) each.id = `preview-${each.id}`;
  return content;
}

/** Make what the wiki rendered fit to stand in another page. */
export function tidy(content) {
  for (const each of content.querySelectorAll("#frontmatter, a.anchor")) each.remove();
  for (const each of content.querySelectorAll("a, area")) each.rel = "noopener";
}

/** Mark the words that are marked in a passage in other elements. */
export function mark(passage, elements) {
  const words = [...passage.querySelectorAll("mark")].map((each) => each.textContent.replace(/\W/g, "\\$&")).join("|"),
    parts = (text) => text.split(RegExp(`(?<!\\w)(${words})`, "gi")).map((part, at) => at % 2 ? element("mark", {}, part) : part);
  if (words) for (const each of elements) for (const node of [...each.childNodes]) node.splitText && node.replaceWith(...parts(node.data));
}

const letters = (text) => text.replace(/[^\p{L}\p{N}]+/gu, "");

/** Mark what a passage quotes in the pane, and scroll to it. */
function show(pane, passage) {
  const [anchor, directive] = passage.hash.slice(1).split(":~:text="),
    heading = anchor && pane.querySelector("#preview-" + CSS.escape(decodeURIComponent(anchor)));
  const blocks = [...pane.querySelectorAll(BLOCKS)].filter((each) => !heading || heading.compareDocumentPosition(each) & 4); // Node.DOCUMENT_POSITION_FOLLOWING
  const texts = blocks.map((each) => letters(each.textContent)), quoted = letters(passage.textContent),
    ends = directive?.split(",").map(decodeURIComponent).map(letters), // a long sentence or a row is named by its ends
    within = (count) => texts.findIndex((text, at) => ends && text.includes(ends[0]) && texts.slice(at, at + count).join("").includes(ends.at(-1))),
    best = within(1) < 0 ? within(3) : within(1), block = blocks[best]; // a sentence may be followed by code
  for (const step of [-1, 1]) {
    const isQuoted = (text) => text && quoted.includes(text.slice(...(step > 0 ? [0, CUT] : [-CUT])));
    for (let at = best; blocks[at] && (at === best || (isQuoted(texts[at]) && !block.matches("tr"))); at += step) blocks[at].classList.add("semantic-best");
  }
  mark(passage, pane.querySelectorAll(".semantic-best,.semantic-best *"));
  const box = (place) => place.getBoundingClientRect(), edge = box(pane.firstElementChild).bottom, // of the title, which stays in view
    scroll = (place, gap = 12) => (pane.scrollTop += box(place).top - edge - gap);
  pane.scrollTop = 0;
  if (heading || block) scroll(heading || block);
  if (block && box(block).bottom > box(pane).bottom) scroll(block);
  const cut = [...pane.querySelectorAll(BLOCKS + ",h2,h3,h4")].find((each) => box(each).top < edge && box(each).bottom > edge);
  if (cut) scroll(cut, 4); // the page ends too soon to scroll further
}
