"""Links and names in a page's Markdown, found without parsing, for reports that read many pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import partial
from itertools import takewhile
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import quote

from otterwiki_semantic.content.excerpts import row_parts
from otterwiki_semantic.content.markdown import is_table_rule, row_cells
from otterwiki_semantic.content.markdown.otterwiki import split_wiki_link, wiki_link_url
from otterwiki_semantic.content.pages.links import page_key, resolve_link
from otterwiki_semantic.core.records import Link

_WIKI_LINK = re.compile(r"\[\[([^\[\]\n]+)\]\]")
_TARGET = re.compile(
    r"""\]\(\s*(?:<([^<>\n]+)>|([^()\s<>]+(?:\([^()\s]*\)[^()\s<>]*)?))|^ {0,3}\[[^\[\]\n]+\]:\s*(?:<([^<>\n]+)>|([^\s<>]+))""",
    re.MULTILINE,
)
_CODE = re.compile(
    r"^(?P<fence> {0,3}(?:`{3,20}|~{3,20}))[^\n]*\n.*?(?:^(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|(?<!`)(?P<ticks>`{1,9})(?!`)(?:(?!\n\n).){0,500}?(?<!`)(?P=ticks)(?!`)"
    r"|^(?: {4}|\t)[^\n]*$|(?P<comment><!--)|^\$\$.{0,2000}?\$\$",
    re.MULTILINE | re.DOTALL,
)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?^(?:---|\.\.\.)[ \t]*$", re.MULTILINE | re.DOTALL)
_LINKED = re.compile(
    r"!?\[\[[^\[\]\n]+\]\]|!?\[(?:[^\[\]]{1,500}+|\[[^\[\]]{0,100}+\]){0,20}\](?:\([^()\s]*+(?:\([^()\s]*+\)[^()\s]*+)*[^()\n]*+\)|\[[^\[\]\n]*\])"
    r"|^ {0,3}\[[^\[\]\n]+\]:[^\n]*$|https?://\S+|^ {0,3}\#{1,6}[ \t][^\n]*$|^[^\n]+\n {0,3}(?:=+|-+)[ \t]*$|<[A-Za-z/][^<>]*>",
    re.MULTILINE,
)
_AFTER_PATH = re.compile(r"[?#]")
_LINK_TEXT = re.compile(r"\[\[([^\[\]\n]++)\]\]|\[([^\[\]]+)\]\([^()]*\)")
_ITEM = re.compile(r"\n[ \t]*[-*+] ")
_SPACES = re.compile(r"\s+")
_SEPARATORS = re.compile(r" ?(?:\| ?)+")
_NAME = "\0"
"""Stands for a name while the row around it is turned into text."""
_NOT_A_LINE = re.compile(r"[^\n]")
_EXCERPT = 160
_LONGEST_COMMENT = 2_000


class Occurrence(NamedTuple):
    """An occurrence in the Markdown of a page."""

    text: str
    line: int
    """From 1."""
    name: tuple[int, int] = (0, 0)
    """Where the name is in an excerpt, as offsets."""


def find_links(markdown: str, source: str, keys: Collection[str], *, page_first: bool = False) -> dict[str, Occurrence]:
    """Return the first link on the page `source` to each of the pages with these keys, as a path; ignores code."""
    found: dict[str, Occurrence] = {}
    line, counted = 1, 0
    for start, _, link in _links(markdown, page_first=page_first):
        line, counted = line + markdown.count("\n", counted, start), start
        resolved = resolve_link(link, source)
        key = page_key(resolved) if resolved else ""
        if resolved and key in keys and key not in found:
            found[key] = Occurrence(resolved, line)
    return found


def redirect_links(markdown: str, source: str, key: str, path: str, *, page_first: bool = False) -> str:
    """Return the page `source` with its links to the page with this key leading to a path, with the same texts and anchors."""
    for start, end, link in reversed(_links(markdown, page_first=page_first)):
        target, written = resolve_link(link, source), markdown[start:end]
        if target and page_key(target) == key:
            more = written[match.start() :] if (match := _AFTER_PATH.search(written)) else ""
            new = (path if link.is_wiki_link else quote(f"/{path}")) + more
            has_label = markdown[:start].rstrip().endswith("|") or markdown[end:].lstrip(" \\").startswith("|")
            if link.is_wiki_link and not has_label:
                new = f"{new}|{written}" if page_first else f"{written}|{new}"
            markdown = f"{markdown[:start]}{new}{markdown[end:]}"
    return markdown


def _links(markdown: str, *, page_first: bool) -> list[tuple[int, int, Link]]:
    """Return the links of a page, not in code, in order, with the ranges of their targets."""
    text = without_code(markdown)
    found = []
    for match in _TARGET.finditer(text):
        group = match.lastindex or 0
        found.append((*match.span(group), Link(match[group], "")))
    for match in _WIKI_LINK.finditer(text):
        _, target = split_wiki_link(match[1], page_first=page_first)
        written = target.strip()
        start = match.start(1) + (match[1].index(written) if page_first else match[1].rindex(written))
        found.append((start, start + len(written), Link(wiki_link_url(target), "", is_wiki_link=True)))
    return sorted(found, key=itemgetter(0))


def prose(markdown: str) -> str:
    """Return a page's Markdown with everything but running text blanked: code, links, headings, front matter, comments."""
    return _blank(_LINKED, without_code(_blank(_FRONT_MATTER, markdown)))


def find_name(text: str, name: str, markdown: str, *, page_first: bool = False) -> Occurrence | None:
    """Return the first occurrence of a name in the `prose` of a page, with an excerpt; case matters for a single word."""
    words = name.split()
    pattern = r"(?<![\w/.@#-])" + r"\s+".join(map(re.escape, words)) + r"(?![\w/@]|[-.]\w)"
    match = re.search(pattern, text, re.IGNORECASE if len(words) > 1 else 0)
    if match is None or "\n\n" in match[0]:
        return None
    as_line = partial(_as_line, page_first=page_first)
    before, after = _around_in_row(markdown, *match.span(), as_line) or _around(markdown, *match.span(), as_line)
    found = f"{before}{' '.join(match[0].split())}"
    return Occurrence(f"{found}{after}", text.count("\n", 0, match.start()) + 1, (len(before), len(found)))


def without_code(text: str) -> str:
    """Return Markdown with code and comments blanked; long or unclosed ones are text."""
    parts: list[str] = []
    done = at = closing = 0
    while found := _CODE.search(text, at):
        start, at = found.span()
        if found["comment"]:
            if 0 <= closing < at:  # any comment that begins before it ends there
                closing = text.find("-->", at)
            if not 0 <= closing - at <= _LONGEST_COMMENT:
                continue
            at = closing + 3
        parts += (text[done:start], _NOT_A_LINE.sub(" ", text[start:at]))
        done = at
    return "".join((*parts, text[done:]))


def _blank(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: _NOT_A_LINE.sub(" ", match[0]), text)


def _around(markdown: str, start: int, end: int, as_line: Callable[[str], str]) -> tuple[str, str]:
    """Return the words before and after a range, from its paragraph, without cut words and URLs."""
    before, last = markdown.rfind("\n\n", 0, start), markdown.find("\n\n", end)
    first, last = 0 if before < 0 else before + 2, len(markdown) if last < 0 else last
    begin, rest = "", ""
    if start - first > _EXCERPT // 2:
        first, begin = markdown.find(" ", start - _EXCERPT // 2, start) + 1 or start, "… "
    if last - end > _EXCERPT // 2:
        last, rest = max(end, markdown.rfind(" ", end, end + _EXCERPT // 2)), " …"
    return begin + as_line(markdown[first:start]).lstrip(" -;"), as_line(markdown[end:last]).rstrip(" -;") + rest


def _around_in_row(markdown: str, start: int, end: int, as_line: Callable[[str], str]) -> tuple[str, str] | None:
    """Return the text of a table row before and after a range in it, or None if the range is not in a table."""
    first, last = markdown.rfind("\n", 0, start) + 1, markdown.find("\n", end)
    above = list(takewhile(lambda line: "|" in line, reversed(markdown[:first].split("\n")[:-1])))
    head = next((above[at + 1] for at, line in enumerate(above[:-1]) if is_table_rule(line)), None)
    if head is None:
        return None
    row = f"{markdown[first:start]}{_NAME}{markdown[end : last if last >= 0 else None]}"
    cells, names = ([as_line(cell) for cell in row_cells(line)] for line in (row, head))
    before, _, after = "".join(row_parts(cells, names)).partition(_NAME)
    if len(before) > _EXCERPT // 2:
        before = f"… {before[-_EXCERPT // 2 :].partition(' ')[2]}"
    if len(after) > _EXCERPT // 2:
        after = f"{after[: _EXCERPT // 2].rpartition(' ')[0]} …"
    return before, after


def _as_line(markdown: str, *, page_first: bool) -> str:
    """Return Markdown as one line, with semicolons between list items, and links as text."""

    def label(link: re.Match[str]) -> str:
        return split_wiki_link(link[1], page_first=page_first)[0] if link[1] else link[2]

    text = _LINK_TEXT.sub(label, _ITEM.sub("\n| ", markdown))
    return _SEPARATORS.sub("; ", _SPACES.sub(" ", text))
