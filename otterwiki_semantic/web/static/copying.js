// Copy buttons, shown by this script because they do nothing without it.
import { delayed, element } from "./parts.js";

const SHOWN_MS = 4000;

/** Copy a text, and return what to say about it; `within` is a dialog that is open, if there is one. */
export async function copyText(text, within = document.body) {
  const failed = text.includes("\n") ? "The browser does not allow it" : `Copy this: ${text}`;
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => "Copied", () => failed);
  const area = element("textarea", { value: text });
  within.append(area);
  area.select();
  const isDone = document.execCommand("copy"); // the only way without TLS
  area.remove();
  return isDone ? "Copied" : failed;
}

export function copying(place) {
  for (const button of place.querySelectorAll("button[data-copy]")) {
    const said = button.parentElement.querySelector("[role=status]");
    const clear = delayed(() => (said.textContent = ""), SHOWN_MS);
    button.hidden = false;
    button.addEventListener("click", async () => {
      said.textContent = await copyText(button.dataset.copy);
      button.focus();
      if (said.textContent === "Copied") clear();
      else clear.stop();
    });
  }
}
