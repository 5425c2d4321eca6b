// What the scripts share: parts of pages, which the wiki renders, and new elements.

export const SEARCH = new URL("..", import.meta.url).pathname.replace(/\/$/, "");

/** Fetch a part of a page: its text, its nodes, and the status of the reply. Rejects if there is no reply, or a redirection. */
export async function fetchPart(source, options = {}) {
  const reply = await fetch(source, { redirect: "error", ...options });
  const text = (await reply.text()).trim();
  const part = element("template", { innerHTML: text });
  return { text, content: part.content, isOk: reply.ok, status: reply.status };
}

export function element(tag, properties, ...content) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...content);
  return made;
}

/** Show the times in a place as people write them where they are. */
export function localizeTimes(place) {
  for (const time of place.querySelectorAll('time[datetime*="T"]')) {
    time.textContent = new Date(time.dateTime).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  }
}
