"""mistune plugins that parse, but do not render, what affects headings and words in An Otter Wiki's Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mistune.plugins.table import NP_TABLE_PATTERN, TABLE_PATTERN, parse_nptable, parse_table, table_in_list

if TYPE_CHECKING:
    from mistune import BlockParser, BlockState, InlineParser, InlineState, Markdown
    from mistune.plugins import Plugin

    _BlockRule = Callable[[BlockParser, re.Match[str], BlockState], int | None]

_DELIMITER_ROW = re.compile(r"\A\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*\|?")
_TITLE = re.compile(r"\A#{1,5}(?:\s*+(.+)\n+|\s*\n)")
_BOX = re.compile(r"^ {0,3}:{3,}+[^:\n]*\n", re.MULTILINE)
_BOX_END = re.compile(r"^ {0,3}:::[~:]*+ *+$", re.MULTILINE)
_WIKI_LINK = r"\[\[[^\[\]\n]+\]\]"
PAGE_FIRST = "page_first"
"""The name in the parser's environment of whether wikilinks begin with the page."""
_MARKED_TEXT = r"==(?=[^\s=])(?:[^=\n]|=(?!=))*[^\s=]=="


def tables(md: Markdown) -> None:
    """Tables whose second line is a row of dashes. mistune accepts any second line, and would lose its words."""
    for name, pattern, parse in (("table", TABLE_PATTERN, parse_table), ("nptable", NP_TABLE_PATTERN, parse_nptable)):

        def parse_strictly(
            block: BlockParser, m: re.Match[str], state: BlockState, parse_rows: _BlockRule = parse
        ) -> int | None:
            return parse_rows(block, m, state) if _DELIMITER_ROW.fullmatch(state.get_line(m.end()).strip()) else None

        md.block.register(name, pattern, parse_strictly, before="paragraph")
    table_in_list(md)


def _add_container(state: BlockState, block: BlockParser, source: str, *, titled: bool) -> None:
    """Add a box. If it is `titled`, a heading on its first line is its title, not a heading of the page."""
    title = _TITLE.match(source) if titled else None
    content = source[title.end() :] if title else source
    child = state.child_state(content if content.endswith("\n") else content + "\n")
    block.parse(child)
    if title and title[1]:
        child.tokens.insert(0, {"type": "paragraph", "text": title[1]})
    state.append_token({"type": "container", "children": child.tokens})


def fancy_blocks(md: Markdown) -> None:
    """``::: info`` to ``:::``, with a title."""

    def parse(block: BlockParser, m: re.Match[str], state: BlockState) -> int:
        opening = _BOX.match(state.src, m.start())
        start = opening.end() if opening else m.end()
        closing = _BOX_END.search(state.src, start)
        stop = closing.start() if closing else state.cursor_max
        _add_container(state, block, state.src[start:stop], titled=True)
        return min(closing.end() + 1, state.cursor_max) if closing else state.cursor_max

    md.block.register("fancy_block", r"^ {0,3}:{3,}[^:\n]*$", parse)


def _prefixed_blocks(name: str, sign: str, *, titled: bool) -> Plugin:
    line = rf" {{0,3}}>{sign}[^\n]*"
    run = re.compile(rf"(?:{line}(?:\n|\Z))+")
    leading = re.compile(rf"^ *>{sign}", re.MULTILINE)

    def parse(block: BlockParser, m: re.Match[str], state: BlockState) -> int:
        whole = run.match(state.src, m.start())
        stop = whole.end() if whole else m.end()
        source = leading.sub("", state.src[m.start() : stop])
        _add_container(state, block, source.strip() + "\n" if titled else source, titled=titled)
        return stop

    return lambda md: md.block.register(name, rf"^{line}$", parse, before="block_quote")


spoilers = _prefixed_blocks("spoiler_block", "!", titled=False)
"""Lines that begin with ``>!``: hidden until clicked."""
foldable_blocks = _prefixed_blocks("fold_block", r"\|", titled=True)
"""Lines that begin with ``>|``: collapsed until clicked, with a title."""


def math_blocks(md: Markdown) -> None:
    """``$$ … $$`` on one or more lines, without markdown inside."""

    def parse(_block: BlockParser, m: re.Match[str], state: BlockState) -> int | None:
        opening = state.src.index("$$", m.start()) + 2
        closing = state.src.find("$$", opening)
        stop = -1 if closing < 0 else state.src.find("\n", closing)
        if closing < 0 or state.src[closing + 2 : stop if stop >= 0 else None].strip():
            return None
        state.append_token({"type": "block_code", "raw": state.src[opening:closing].strip("\n")})
        return stop + 1 if stop >= 0 else state.cursor_max

    md.block.register("math_block", r"^[ \t]*\$\$", parse)


def wiki_links(md: Markdown) -> None:
    """``[[Page]]`` and ``[[label|Page]]``, or with `PAGE_FIRST` in the environment ``[[Page|label]]``."""

    def parse(_inline: InlineParser, m: re.Match[str], state: InlineState) -> int:
        label, target = split_wiki_link(m.group(0)[2:-2], page_first=state.env.get(PAGE_FIRST, False))
        state.append_token({"type": "wiki_link", "raw": label, "attrs": {"url": wiki_link_url(target)}})
        return m.end()

    md.inline.register("wiki_link", _WIKI_LINK, parse, before="link")


def split_wiki_link(inner: str, *, page_first: bool) -> tuple[str, str]:
    """Return the label and the target in the brackets of a wikilink; without one of them, they are the same."""
    first, _, last = inner.partition("|")
    first = first.removesuffix("\\") if last else first  # in a table
    first, last = (first, last) if first.strip() and last.strip() else (first.strip() or last,) * 2
    return (last, first) if page_first else (first, last)


def wiki_link_url(target: str) -> str:
    """Return the URL that the target of a wikilink names."""
    target = target.strip()
    return target if target.startswith(("/", "#")) else f"/{target}"


def marked_text(md: Markdown) -> None:
    """``==marked==`` text."""

    def parse(inline: InlineParser, m: re.Match[str], state: InlineState) -> int:
        inner = state.copy()
        inner.src = m.group(0)[2:-2]
        children: list[dict[str, Any]] = inline.render(inner)
        state.append_token({"type": "mark", "children": children})
        return m.end()

    md.inline.register("mark", _MARKED_TEXT, parse, before="emphasis")


PLUGINS = (tables, fancy_blocks, spoilers, foldable_blocks, math_blocks, wiki_links, marked_text)
