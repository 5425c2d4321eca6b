"""Turn the sentences that an answer quotes into paragraphs, lists, tables and code, as on their pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Literal, NamedTuple

from markupsafe import Markup, escape

from otterwiki_semantic.content.markdown import STRUCK, fenced_lines
from otterwiki_semantic.core.records import AnswerSentence, Hit, HitUnit, UnitKind

_CELL = " | "
_CUT = Markup("…")
_GAPS: dict[str, list[Markup | Sequence[Markup]]] = {"text": [_CUT], "rows": [[_CUT]]}
"""What stands for text that is left out, by the kind of quotation."""
_SHORTEST = 2
"""Characters of a code span; a single one may be a word elsewhere."""
_CACHED = 8
"""Sources of recent answers, each of whose cells and sentences has its code marked."""
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)([^\n]+?)(?<!`)\1(?!`)")


class Quotation(NamedTuple):
    """Adjacent quotations of one kind: the sentences of a paragraph, the items of a list, the rows of a table, or code."""

    kind: Literal["text", "items", "steps", "rows", "code"]
    parts: Sequence[Markup | Sequence[Markup]]
    """The texts, or the cells of each row."""
    names: Sequence[Markup] = ()
    """The names of the columns of rows, or nothing."""


def quotations(section: Iterable[tuple[AnswerSentence, Hit]]) -> list[Quotation]:
    """Return what is quoted from a section, in page order; each sentence with its source, which has the quoted unit.

    A single item is a paragraph.
    """
    found: list[Quotation] = []
    before: Hit | None = None
    for sentence, hit in section:
        quoted = _quotation(sentence, hit, is_unit=hit is not before)
        if found and before and _continues(before, hit, found[-1], quoted):
            gap = _GAPS.get(quoted.kind, []) if _leaves_out(before, hit) else []
            quoted = quoted._replace(parts=[*found.pop().parts, *gap, *quoted.parts])
        found.append(quoted)
        before = hit
    return [each._replace(kind="text") if each.kind == "items" and len(each.parts) == 1 else each for each in found]


def is_numbered(hit: Hit) -> bool:
    """Return whether the list of the quoted unit is numbered."""
    items = hit.units[0].items if hit.units else ()
    return bool(items) and hit.snippet[items[0][0] :].lstrip()[:1].isdigit()


def with_code(text: str, markdown: str | None) -> Markup:
    """Return plain text as HTML; what its source's Markdown has as code is code."""
    code = _code_of(markdown or "")
    parts = code.split(text) if code else [text]
    return Markup().join(Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts))


def item_parts(text: str, hit: Hit) -> list[tuple[str, bool]]:
    """Return what a quoted list item, whose text is on one line, has on its page: prose and lines of code, which are True."""
    for place in hit.units[0].items if hit.units else ():
        _, *told = hit.snippet[slice(*place)].lstrip().split(maxsplit=1)  # without the marker
        lines = [" ".join(line.split()) for line in "".join(told).split("\n")]
        if lines[1:] and " ".join(lines) == text:
            code = {" ".join(line.split()) for line in fenced_lines(hit.markdown or "")}
            found: list[tuple[str, bool]] = []
            for is_code, group in groupby(lines, key=code.__contains__):
                part = list(group)
                found += [(line, True) for line in part] if is_code else [(" ".join(part), False)]
            return found
    return [(text, False)]


@lru_cache(_CACHED)
def _code_of(markdown: str) -> re.Pattern[str] | None:
    """Return an expression that matches what Markdown has as code, the longest first; None without code."""
    spans = {span for match in _CODE_SPAN.finditer(markdown) if len(span := match[2].strip()) >= _SHORTEST}
    longest_first = map(re.escape, sorted(spans, key=len, reverse=True))
    return re.compile(rf"(?<!\w)({'|'.join(longest_first)})(?!\w)") if spans else None


def _quotation(sentence: AnswerSentence, hit: Hit, *, is_unit: bool) -> Quotation:
    """Return a quotation: the unit of its source, or what follows the unit."""
    unit: HitUnit | None = next(iter(hit.units), None) if is_unit else None
    if sentence.kind == "item":
        parts = (
            Markup("<code>{}</code>").format(part) if is_code else with_code(part, hit.markdown)
            for part, is_code in item_parts(sentence.text, hit)
        )
        return Quotation("steps" if is_numbered(hit) else "items", [Markup("<br>").join(parts)])
    if sentence.kind == "code":
        return Quotation("code", [escape(sentence.text)])
    if unit and unit.kind is UnitKind.ROW:
        cells, names = _cells(hit, unit.range), _cells(hit, unit.header) if unit.header else []
        if not any(STRUCK in cell for cell in (*cells, *names)):
            return Quotation("rows", [cells], names if len(names) >= len(cells) else [])
    return Quotation("items" if unit and unit.kind is UnitKind.ITEM else "text", [with_code(sentence.text, hit.markdown)])


def _cells(hit: Hit, place: tuple[int, int]) -> list[Markup]:
    return [with_code(cell.strip(), hit.markdown) for cell in f" {hit.snippet[slice(*place)]} ".split(_CELL)]


def _continues(before: Hit, hit: Hit, last: Quotation, quoted: Quotation) -> bool:
    """Return whether a quotation belongs to the paragraph, list or table of the last one."""
    if last.kind != quoted.kind or last.names != quoted.names or quoted.kind == "code":
        return False
    return quoted.kind != "text" or "\n" not in (_between(before, hit) or "\n")


def _leaves_out(before: Hit, hit: Hit) -> bool:
    return any(map(str.isalpha, _between(before, hit) or ""))


def _between(before: Hit, hit: Hit) -> str | None:
    """Return the text between two quotations of a passage; None if they are of different passages."""
    if before.snippet != hit.snippet or not before.best_sentence or not hit.best_sentence:
        return None
    return before.snippet[before.best_sentence[1] : hit.best_sentence[0]]
