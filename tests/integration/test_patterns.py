"""Every regular expression of the package takes linear time, whatever text it is given.

How to write one: start it with ``\\A``, or with a lookbehind that lets it begin only once in a run of characters; make repeats
possessive (``*+``), or separate them by what neither accepts; bound what looks for an end that may be missing.
"""

from __future__ import annotations

import re

from otterwiki_semantic.search.answering.languages import LANGUAGES
from tests.support.pumps import Expression, calls, expressions, has_possessive_group, modules, slow

_SIZE = 5_000
_MADE_IN_FUNCTIONS = {
    "content.pages.source:find_name": "the words of a name, escaped, with spaces between them",
    "content.markdown.otterwiki:_prefixed_blocks": "parsing runs in a process with limits",
    "core.settings:parse": "reads a setting",
    "core.settings:_database": "reads a setting",
    "search.answering.grounding:_has_word": "a name or number, escaped",
    "search.answering.languages:__init__": "tested below",
    "search.answering.languages:_whole_words": "tested below",
    "web.pages.quotations:_code_of": "the code of a page, escaped",
}
"""Expressions that depend on more than their module, and why they need no test."""
_FOUND = {
    "between words": (r"[ \t]*[\s&/'’-][ \t]*", 0),
    "linked": (r"!?\[[^\[\]]{0,500}\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*[^()\n]*\)", re.MULTILINE),
    "table rule": (r"[\s>]*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$", 0),
    "scan from every start": (r"a+b", 0),
    "nested repeats": (r"(?:\w+[.]?)+", 0),
    "opened and never closed": (r"<!--.*?-->", re.DOTALL),
}
"""Expressions that stopped a wiki, and the simplest of other kinds."""


def test_every_expression_is_linear() -> None:
    found = expressions()
    assert len(found) > 100
    found += [
        Expression(f"{code} {name}", pattern.pattern, 0, "re")
        for code, table in LANGUAGES.items()
        for name, pattern in (*table.markers.items(), ("joins", table.joins), ("agent", table.agent), ("dates", table.dates))
    ]
    assert slow(found, _SIZE) == {}


def test_no_expression_is_made_where_the_test_cannot_see_it() -> None:
    made = {
        f"{module.__name__.removeprefix('otterwiki_semantic.')}:{call.function}"
        for module in modules()
        for call in calls(module)
        if call.pattern is None
    }
    assert made == set(_MADE_IN_FUNCTIONS)


def test_no_group_is_repeated_possessively() -> None:
    """Before Python 3.11.5 `re` matches such groups wrongly (gh-106052): Debian 12 has 3.11.2."""
    assert has_possessive_group(r"(?:ab|c)++")
    assert not has_possessive_group(r"(?:a++|[)]*+)+")
    found = [each.name for each in expressions() if each.engine == "re" and has_possessive_group(each.pattern, each.flags)]
    assert found == []


def test_expressions_that_are_not_linear_are_found() -> None:
    bad = [Expression(name, pattern, int(flags), "re") for name, (pattern, flags) in _FOUND.items()]
    assert list(slow(bad, _SIZE)) == bad
