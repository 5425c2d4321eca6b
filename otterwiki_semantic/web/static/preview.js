// A preview of the page beside the results, at the passage that is pointed at or chosen.
import { delayed, element, fetchPart } from "./parts.js";

const POINTED_MS = 150, PAGES = 20;
const pages = new Map(); // what was loaded, by URL
const later = delayed(preview, POINTED_MS);
let shown = null; // the passage that is shown

/** Show the page of a passage, a link with `data-preview`, in a pane; nothing without a passage. */
export async function preview(pane, passage) {
  later.stop();
  select(shown, passage);
  shown = passage;
  if (pane.hidden) pane.replaceChildren(element("p", { textContent: "Loading …" }));
  pane.hidden = !passage?.dataset.preview; // its place is kept from the beginning
  if (pane.hidden) return;
  const source = passage.dataset.preview;
  const content = pages.get(source) ?? (await loaded(source));
  if (shown !== passage) return; // another one was chosen meanwhile
  if (pages.size > PAGES) pages.clear();
  pages.set(source, content);
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
  const { content } = await fetchPart(source).catch(() => ({ content: document.createDocumentFragment() }));
  tidy(content);
  const [title, first] = content.querySelectorAll("h1, h2");
  if (first && first.textContent.trim() === title.textContent.trim()) first.hidden = true;
  for (const each of content.querySelectorAll("[id]")) each.id = `preview-${each.id}`;
  return content;
}

/** Make what the wiki rendered fit to stand in another page. */
export function tidy(content) {
  for (const each of content.querySelectorAll("#frontmatter, a.anchor")) each.remove();
  for (const each of content.querySelectorAll("a, area")) each.rel = "noopener";
}

/** Mark the passage in the pane, and scroll to it. */
function show(pane, passage) {
  const [anchor, directive = ""] = new URL(passage.href).hash.slice(1).split(":~:text=");
  const ends = directive.split(",").map(decodeURIComponent); // a long sentence or a row is named by its ends
  const heading = anchor && pane.querySelector(`[id="${CSS.escape("preview-" + decodeURIComponent(anchor))}"]`);
  const blocks = [...pane.querySelectorAll("p, li, pre, tr, dd")].filter((each) => !heading || heading.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING);
  const block = directive && blocks.find((each) => ends.every((end) => each.textContent.replace(/\s+/g, " ").includes(end)));
  if (block) block.classList.add("semantic-best");
  const top = (place) => place.getBoundingClientRect().top, gap = pane.firstElementChild.offsetHeight + 12; // the title stays in view
  const scroll = (place) => (pane.scrollTop += top(place) - top(pane) - gap);
  pane.scrollTop = 0;
  if (heading || block) scroll(heading || block);
  if (block && block.getBoundingClientRect().bottom > pane.getBoundingClientRect().bottom) scroll(block);
}
