// Buttons that copy a text: shown by this script, since they do nothing without it.
async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = Object.assign(document.createElement("textarea"), { value: text });
  document.body.append(area);
  area.select();
  const isDone = document.execCommand("copy"); // the only way on a wiki without TLS
  area.remove();
  if (!isDone) throw new Error("copying is not allowed");
}

export function copying(place) {
  for (const button of place.querySelectorAll("button[data-copy]")) {
    const label = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      button.textContent = await copy(button.dataset.copy).then(() => "Copied", () => button.dataset.copy);
      button.focus();
      setTimeout(() => (button.textContent = label), 2000);
    });
  }
}
