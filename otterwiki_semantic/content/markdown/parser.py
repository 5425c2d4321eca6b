"""Parse a page's Markdown into sections with mistune and `otterwiki`, so that headings are those that the wiki shows."""

from __future__ import annotations

import re
import string
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, ClassVar, NamedTuple

import mistune
from mistune.helpers import BLOCK_TAGS, PRE_TAGS
from mistune.plugins.formatting import strikethrough
from mistune.plugins.url import url

from otterwiki_semantic.content.markdown import otterwiki
from otterwiki_semantic.content.markdown.front_matter import front_matter_end, split_front_matter
from otterwiki_semantic.content.markdown.plain_text import heading_anchor, links_in, visible_html, visible_text
from otterwiki_semantic.core.errors import LimitExceededError
from otterwiki_semantic.core.records import Block, BlockKind, Document, Line, Link, Section

_Token = dict[str, Any]

_LINE_END = re.compile(r"\r\n?|\n")
_MAX_INLINE = 20_000
"""The most characters of a paragraph, or of a line in it, to parse for links and emphasis; longer text is taken verbatim."""
_MAX_BRACKET_WORK = 2_000_000
"""Characters times opening brackets up to which a paragraph's links are parsed; mistune's time grows with their product."""
_MAX_SECTIONS = 20_000
_MIN_SECONDS, _SECONDS_PER_BYTE = 5.0, 5e-6
_TAGS_BY_NAME = frozenset((*BLOCK_TAGS, *PRE_TAGS))
"""Tags that begin an HTML block, whatever follows their names."""
_TABS = re.compile(r"[^\S ]{20}")
_MARKUP_CHARACTERS = set("\\`*_~=<![h\n")
_MARKUP = re.compile(r"[\\`*\[\n]|\b_|!(?=\[)|~(?=~)|=(?==)|<(?=[A-Za-z/!?])|h(?=ttps?://)|(?<=&)h")
"""Where inline markup may begin."""
_LOOKAHEAD = 64
"""Lines to search for the source of a text. It is one of the next few, unless there is markup in between."""


class _State(mistune.BlockState):
    def add_paragraph(self, text: str) -> None:
        known = len(self.tokens)
        super().add_paragraph(text)
        for token in self.tokens[known:]:
            token["start"] = self.cursor


class _BlockParser(mistune.BlockParser):
    """Also records the offset of each block, and leaves footnotes in place as text."""

    state_cls = _State

    def parse_method(self, m: re.Match[str], state: mistune.BlockState) -> int | None:
        known = len(state.tokens)
        end = super().parse_method(m, state)
        for token in state.tokens[known:]:
            token.setdefault("start", m.start())
        return end

    def parse_atx_heading(self, m: re.Match[str], state: mistune.BlockState) -> int:
        """Add a heading; mistune's own pattern for closing hashes takes quadratic time for spaces."""
        text = m.group("atx_2").strip(string.whitespace)
        without_hashes = text.rstrip().rstrip("#")
        has_closing_hashes = text.rstrip() != without_hashes and without_hashes[-1:].strip() == ""
        if has_closing_hashes:
            text = without_hashes.rstrip()
        state.append_token({"type": "heading", "text": text, "attrs": {"level": len(m.group("atx_1"))}, "style": "atx"})
        return m.end() + 1

    def parse_raw_html(self, m: re.Match[str], state: mistune.BlockState) -> int | None:
        """Add HTML. A line with many tabs becomes a paragraph: mistune's attribute pattern takes cubic time for tabs."""
        tag = m.group(0).strip(" </").lower()
        has_attributes = tag.isalnum() and tag not in _TAGS_BY_NAME
        if has_attributes and _TABS.search(state.get_line(m.start())):
            return state.append_paragraph()
        return super().parse_raw_html(m, state)

    def parse_ref_link(self, m: re.Match[str], state: mistune.BlockState) -> int | None:
        return None if m.group("reflink_1").startswith("^") else super().parse_ref_link(m, state)


class _InlineParser(mistune.InlineParser):
    """Ends an unquoted HTML attribute at any white space, as HTML does; mistune's own pattern takes cubic time for tabs.

    mistune tries all rules at each character that one of them may begin with, such as every ``h`` because of ``http``. This
    parser also checks the next characters, except after ``&``, where an attempt divides the text.
    """

    SPECIFICATION: ClassVar = {
        **mistune.InlineParser.SPECIFICATION,
        "inline_html": mistune.InlineParser.SPECIFICATION["inline_html"].replace("[^ !", r"[^\s!"),
    }

    def _get_fast_trigger_re(self, chars: set[str]) -> re.Pattern[str]:
        return _MARKUP if chars == _MARKUP_CHARACTERS else super()._get_fast_trigger_re(chars)


_PARSER = mistune.Markdown(block=_BlockParser(), inline=_InlineParser(), plugins=[url, strikethrough, *otterwiki.PLUGINS])


def parse_seconds(size: int) -> float:
    """Return the CPU seconds that parsing a page of `size` bytes may take: five times what ordinary pages take."""
    return max(_MIN_SECONDS, size * _SECONDS_PER_BYTE)


def split_lines(text: str) -> list[str]:
    """Return the lines of a page, as line numbers count them."""
    return _LINE_END.sub("\n", text.replace("\0", "\ufffd").removeprefix("\ufeff")).split("\n")


def read_front_matter(text: str) -> dict[str, Any]:
    """Return the front matter of a page, as `parse_markdown` does."""
    return split_front_matter(split_lines(text))[0]


def parse_markdown(text: str, *, page_first: bool = False) -> Document:
    """Parse a page; `page_first` is the order of its wikilinks.

    No input raises an error: if the parser fails, the page is one section of plain paragraphs.
    """
    lines = split_lines(text)
    front_matter, skipped = split_front_matter(lines)
    end = front_matter_end(lines)
    unread = "" if skipped else "\n".join(lines[:end])
    body = "\n" * end + "\n".join(lines[end:])
    builder = _DocumentBuilder(body, lines, page_first=page_first)
    try:
        return Document(front_matter, builder.sections(unread), tuple(builder.links))
    except (RecursionError, re.error, ValueError, KeyError, IndexError, AttributeError):
        return Document(front_matter, _plain_sections(lines, skipped))


def parse_within_limits(text: str, *, page_first: bool = False) -> Document:
    """Parse a page like `parse_markdown`. Errors: `LimitExceededError` for more sections than people would read."""
    document = parse_markdown(text, page_first=page_first)
    if len(document.sections) > _MAX_SECTIONS:
        raise LimitExceededError(f"finds more than {_MAX_SECTIONS:,} sections")
    return document


def parse_plain_text(text: str) -> Document:
    """Return a page as one section of plain paragraphs, without front matter: the fallback for `parse_markdown`."""
    return Document({}, _plain_sections(_LINE_END.sub("\n", text).split("\n"), 0))


class _Heading(NamedTuple):
    level: int = 0
    text: str = ""
    anchor: str = ""
    line: int = 1


class _DocumentBuilder:
    def __init__(self, source: str, lines: list[str], *, page_first: bool) -> None:
        self._source = source if source.endswith("\n") else source + "\n"
        self._lines = lines
        self._offsets = [0, *(match.end() for match in re.finditer("\n", self._source))]
        self._cursor = 0
        self._anchors: Counter[str] = Counter()
        self._env: MutableMapping[str, Any] = {}
        self._page_first = page_first
        self.links: list[Link] = []

    def sections(self, unread_front_matter: str) -> tuple[Section, ...]:
        state = _State()
        state.process(self._source)
        self._env = state.env
        self._env[otterwiki.PAGE_FIRST] = self._page_first
        _PARSER.block.parse(state)

        path = [_Heading()]
        found: list[Section] = []
        unread = (Line(line, number) for number, line in enumerate(unread_front_matter.split("\n"), 1) if line.strip(" -"))
        blocks = list(_block(BlockKind.LINES, unread))
        for token in state.tokens:
            line = min(bisect_right(self._offsets, token.get("start", 0)), len(self._lines))
            self._cursor = max(self._cursor, line - 1)
            if token["type"] != "heading":
                blocks.extend(self._blocks(token))
                continue
            found.append(_section(path, line - 1, blocks))
            heading = self._heading(token, line)
            path = [*(outer for outer in path if outer.level < heading.level), heading]
            blocks = []
        found.append(_section(path, len(self._lines), blocks))
        return tuple(section for section in found if section.level or section.blocks)

    def _heading(self, token: _Token, line: int) -> _Heading:
        inline = self._inline(token["text"])
        text = " ".join(visible_text(inline).split())
        return _Heading(token["attrs"]["level"], text, self._next_anchor(inline), line)

    def _next_anchor(self, heading: list[_Token]) -> str:
        """Return a heading's anchor; repeated ones end in ``-1``, ``-2``, as in the wiki."""
        base = heading_anchor(heading)
        repeats = self._anchors[base]
        self._anchors[base] += 1
        return f"{base}-{repeats}" if repeats else base

    def _inline(self, text: str) -> list[_Token]:
        text = text.strip(" \r\n\t\f")
        if len(text) <= _MAX_INLINE and len(text) * text.count("[") <= _MAX_BRACKET_WORK:
            tokens = _PARSER.inline(text, self._env)
            self.links.extend(links_in(tokens))
            return tokens
        lines = text.split("\n")
        if len(lines) == 1:
            return [{"type": "text", "raw": text}]
        return [token for line in lines for token in (*self._inline(line), {"type": "softbreak"})]

    def _blocks(self, token: _Token) -> Iterator[Block]:
        if _is_container(token):
            for child in token["children"]:
                yield from self._blocks(child)
        else:
            kind, _ = _ROWS.get(token["type"], (BlockKind.PROSE, None))
            yield from _block(kind, self._lines_of(token))

    def _lines_of(self, token: _Token) -> Iterator[Line]:
        if token["type"] == "heading":
            self._next_anchor(self._inline(token["text"]))  # begins no section, but takes an anchor
        if token["type"] in _ROWS:
            yield from _ROWS[token["type"]][1](self, token)
        elif "text" in token:
            yield from self._prose(token)

    def _prose(self, token: _Token) -> Iterator[Line]:
        numbers = [self._locate(line) for line in token["text"].strip("\n").split("\n")]
        shown = visible_text(self._inline(token["text"])).split("\n")
        for index, line in enumerate(shown):
            yield Line(line.strip(), numbers[min(index, len(numbers) - 1)])

    def _verbatim(self, token: _Token) -> Iterator[Line]:
        for line in token["raw"].strip("\n").split("\n"):
            yield Line(line.rstrip(), self._locate(line))

    def _html(self, token: _Token) -> Iterator[Line]:
        raw = token["raw"].strip("\n")
        numbers = [self._locate(line) for line in raw.split("\n")]
        for number, line in zip(numbers, visible_html(raw).split("\n"), strict=False):
            yield Line(" ".join(line.split()), number)

    def _table(self, token: _Token) -> Iterator[Line]:
        for part in token["children"]:
            rows = [part] if part["type"] == "table_head" else part["children"]
            for row in rows:
                cells = [cell["text"].replace("\\|", "|") for cell in row["children"]]
                number = self._locate(next((cell for cell in cells if cell.strip()), ""))
                shown = (" ".join(visible_text(self._inline(cell)).split()) for cell in cells)
                yield Line(" | ".join(shown).strip(), number)

    def _list(self, token: _Token) -> Iterator[Line]:
        first = token["attrs"].get("start", 1)
        for position, item in enumerate(token["children"]):
            marker = f"{first + position}. " if token["attrs"].get("ordered") else "- "
            for line in self._item(item):
                yield Line(marker + line.text, line.number, line.begins_item or not marker.isspace())
                marker = " " * len(marker)

    def _item(self, item: _Token) -> Iterator[Line]:
        for child in item["children"]:
            yield from self._item(child) if _is_container(child) else self._lines_of(child)

    def _locate(self, fragment: str) -> int:
        """Return the number of the next source line that contains `fragment`, or of the next line if none is nearby."""
        fragment = fragment.strip()
        last = len(self._lines) - 1
        for index in range(self._cursor, min(self._cursor + _LOOKAHEAD, last + 1)):
            if fragment and fragment in self._lines[index]:
                self._cursor = min(index + 1, last)
                return index + 1
        return min(self._cursor, last) + 1


_ROWS: dict[str, tuple[BlockKind, Callable[[_DocumentBuilder, _Token], Iterator[Line]]]] = {
    "block_code": (BlockKind.CODE, _DocumentBuilder._verbatim),
    "block_html": (BlockKind.LINES, _DocumentBuilder._html),
    "table": (BlockKind.TABLE, _DocumentBuilder._table),
    "list": (BlockKind.LIST, _DocumentBuilder._list),
}
"""Blocks other than prose: the kind, and the method that returns the lines."""


def _is_container(token: _Token) -> bool:
    return "children" in token and token["type"] not in _ROWS


def _section(path: list[_Heading], end: int, blocks: list[Block]) -> Section:
    level, text, anchor, start = path[-1]
    headings = tuple(heading.text for heading in path if heading.level)
    return Section(level, text, anchor, headings, start, max(start, end), tuple(blocks))


def _block(kind: BlockKind, lines: Iterator[Line]) -> Iterator[Block]:
    kept = tuple(line for line in lines if line.text.strip())
    if kept:
        yield Block(kind, kept)


def _plain_sections(lines: list[str], skipped: int) -> tuple[Section, ...]:
    """Return the page as one section without headings, its paragraphs verbatim."""
    blocks: list[Block] = []
    paragraph: list[Line] = []
    for number, line in enumerate((*lines[skipped:], ""), skipped + 1):
        if line.strip():
            paragraph.append(Line(line.strip(), number))
        elif paragraph:
            blocks.append(Block(BlockKind.PROSE, tuple(paragraph)))
            paragraph = []
    return (Section(0, "", "", (), 1, len(lines), tuple(blocks)),) if blocks else ()
