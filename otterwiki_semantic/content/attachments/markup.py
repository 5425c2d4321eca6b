"""Convert HTML, e-mail, notebooks and plain text to Markdown, with the standard library only."""

from __future__ import annotations

import codecs
import csv
import email
import json
import re
from collections.abc import Sequence
from email import policy
from html.parser import HTMLParser

from otterwiki_semantic.core.errors import AttachmentError

PAGE_MARKER = re.compile(r"^<!-- page (\d{1,6}) -->$", re.MULTILINE)
_SPECIAL = re.compile(
    r"[\\`*\[\]<|~]|(?<![^\W_])_|_(?![^\W_])|&(?=[#\w])|=(?==)|^(?:[#>+=-]|\d{1,9}(?=[.)](?:\s|$)))", re.MULTILINE
)
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SAMPLE = 8_192
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_HIDDEN = {"script", "style", "head", "template", "noscript", "svg", "nav", "object", "iframe"}
_BLOCKS = {
    *("p", "div", "section", "article", "aside", "main", "header", "footer", "figure", "blockquote"),
    *("ul", "ol", "dl", "dt", "dd", "table", "br", "hr"),
}


def page_marker(number: int) -> str:
    """Return the line before a page, numbered from 1."""
    return f"<!-- page {number} -->"


def escape(text: str) -> str:
    """Escape a text for Markdown."""
    return _SPECIAL.sub(lambda match: f"{match[0]}\\" if match[0].isdigit() else f"\\{match[0]}", text)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of plain text as a Markdown table, with the first row as header."""
    width = max(map(len, rows), default=0)
    lines = [
        "| " + " | ".join(escape(" ".join(cell.split())) for cell in [*row, *[""] * (width - len(row))]) + " |" for row in rows
    ]
    return "\n".join([*lines[:1], "|" + " --- |" * width, *lines[1:]])


def fenced(text: str, language: str = "") -> str:
    """Return a text as a fenced code block."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def decode_text(content: bytes) -> str:
    """Decode a file in UTF-8, in UTF-16 with a byte order mark, or else in Windows-1252. Errors: `AttachmentError`."""
    encoding = "utf-16" if content.startswith(_MARKS[1:]) else "utf-8-sig"
    if b"\0" in content[:_SAMPLE] and encoding != "utf-16":
        raise AttachmentError("is not text")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def csv_to_markdown(text: str, delimiter: str) -> str:
    """Convert comma-separated values to a table."""
    try:
        rows = [row for row in csv.reader(text.splitlines(), delimiter=delimiter) if row]
    except csv.Error as error:
        raise AttachmentError(f"is damaged: {error}") from None
    return table(rows) if rows else ""


def mail_to_markdown(content: bytes) -> str:
    """Convert an e-mail: its subject as a heading, sender and recipients, its text, and the names of its attachments."""
    message = email.message_from_bytes(content, policy=policy.default)
    parts = [f"# {escape(' '.join(str(message['subject'] or 'No subject').split()))}"]
    parts += [
        f"{name}: {escape(' '.join(str(message[name]).split()))}" for name in ("From", "To", "Cc", "Date") if message[name]
    ]
    body = message.get_body(("plain", "html"))
    if body is not None:
        text = str(body.get_content())
        own_lines = (line for line in text.splitlines() if not line.startswith(">"))  # no quotes from an earlier e-mail
        parts.append(html_to_markdown(text) if body.get_content_subtype() == "html" else escape("\n".join(own_lines)))
    names = [name for part in message.iter_attachments() if (name := part.get_filename())]
    return "\n\n".join([*parts, *(f"- {escape(name)}" for name in names)])


def notebook_to_markdown(content: bytes) -> str:
    """Convert the cells of a Jupyter notebook, including printed output. Errors: `AttachmentError`."""
    try:
        notebook = json.loads(content)
        language = notebook.get("metadata", {}).get("kernelspec", {}).get("language", "")
        cells = [(cell["cell_type"], "".join(cell["source"]), cell.get("outputs", ())) for cell in notebook["cells"]]
        parts = []
        for kind, source, outputs in cells:
            parts.append(fenced(source, language) if kind == "code" else source)
            parts += [fenced("".join(output["text"])) for output in outputs if output.get("output_type") == "stream"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise AttachmentError("is damaged, or no notebook") from None
    return "\n\n".join(parts)


def html_to_markdown(text: str) -> str:
    """Convert an HTML page's text, with its headings, lists, tables and code."""
    converter = _HtmlConverter()
    converter.feed(text)
    converter.close()
    converter.end_block()
    return "\n\n".join(converter.blocks)


class _HtmlConverter(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self._text: list[str] = []
        self._prefix = ""
        self._hidden: list[str] = []
        self._rows: list[list[str]] = []
        self._is_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden.append(tag)
        elif tag == "img":
            self._text.append(dict(attrs).get("alt") or "")
        elif tag == "tr":
            self.end_block()
            self._rows.append([])
        elif tag in {"td", "th"} and self._rows:
            self._text.clear()
        elif tag == "pre" or tag == "li" or tag in _HEADINGS:
            self.end_block()
            self._is_code = tag == "pre"
            self._prefix = "- " if tag == "li" else "#" * _HEADINGS.get(tag, 0) + " "
        elif tag in _BLOCKS and not self._rows:
            self.end_block()

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        elif tag in {"td", "th"} and self._rows:
            self._rows[-1].append("".join(self._text))
            self._text.clear()
        elif tag == "table":
            rows, self._rows = [row for row in self._rows if row], []
            self.blocks += [table(rows)] if rows else []
        elif (tag in _BLOCKS or tag in _HEADINGS or tag in {"pre", "li"}) and not self._rows:
            self.end_block()

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._text.append(data)

    def end_block(self) -> None:
        text = "".join(self._text)
        self._text.clear()
        if text.strip():
            self.blocks.append(fenced(text) if self._is_code else (self._prefix + escape(" ".join(text.split()))).strip())
        self._prefix, self._is_code = "", False
