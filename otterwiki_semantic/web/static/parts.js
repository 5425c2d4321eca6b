// What the scripts share: parts of pages, which the wiki renders, and new elements.

export const SEARCH = new URL("..", import.meta.url).pathname.slice(0, -1);

/** Return the element of the plugin with an id. */
export const byId = (name) => document.getElementById(`semantic-${name}`);

/** Return whether a click on a link is to open it here. */
export const isPlainClick = (event) => !(event.ctrlKey || event.metaKey || event.shiftKey);

/** Fetch a part of a page: its text, its nodes, and whether it is no error page. Rejects without a reply, or without permission. */
export async function fetchPart(source, options = {}) {
  const reply = await fetch(source, { redirect: "manual", ...options });
  if (reply.type === "opaqueredirect" || reply.status === 403) throw Error("forbidden", { cause: 1 });
  const text = (await reply.text()).trim();
  return { text, content: element("template", { innerHTML: text }).content, isOk: reply.ok };
}

export function element(tag, properties, ...content) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...content);
  return made;
}

/** Return an alert that says why a part could not be fetched, with a button to do something about it. */
export function failure({ cause }, retry) {
  const alert = byId("alerts").content.children[cause ? 1 : 0].cloneNode(true);
  alert.querySelector("button")?.addEventListener("click", retry);
  return alert;
}

/** Return a function that calls another one some milliseconds after its last call, with `stop` to cancel that. */
export function delayed(act, milliseconds) {
  let timer;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(act, milliseconds, ...given);
  };
  later.stop = () => clearTimeout(timer);
  return later;
}

/** Return a function that aborts the previous request, and returns the signal of the next one. */
export function latest() {
  let asked;
  return () => {
    asked?.abort();
    return (asked = new AbortController()).signal;
  };
}

/** Show the times in a place in the local time zone; in a table of hours, below a row for each date. */
export function localizeTimes(place) {
  let day;
  for (const time of place.querySelectorAll('time[datetime*="T"]')) {
    const text = new Date(time.dateTime).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
    const [date, clock] = text.split(", "), isListed = time.closest("[data-days]");
    if (isListed && date !== day) time.closest("tr").before(element("tr", {}, element("th", { colSpan: 5, scope: "rowgroup", textContent: date })));
    time.textContent = isListed ? clock : text;
    day = isListed && date;
  }
}
