"""How the time of parsing grows with text that is made to slow parsers down."""

from __future__ import annotations

import time

from benchmarks.support.options import Options
from benchmarks.support.report import Figure, at_most
from otterwiki_semantic.content.markdown.parser import parse_markdown

_UNITS = (
    *(
        "[",
        "![",
        "> ",
        "> - ",
        "`a ",
        "*a ",
        "**a *b ",
        "<a ",
        "[a](b ",
        "|a",
        "a\n",
        "<!-- ",
        "$$\n",
        ":::\n",
        "# a\n",
        "- a\n",
    ),
)
_SHORT, _LONG = 32_000, 256_000
_LEAST_SECONDS = 1e-3
_ATTEMPTS = 3
_MOST_GROWTH = 16.0
"""Eight times the text: 8 is linear, 64 quadratic."""


def measure(_options: Options) -> list[Figure]:
    """Return how many times as long eight times as much of the worst text takes."""
    growth = {unit: _seconds(unit, _LONG) / max(_seconds(unit, _SHORT), _LEAST_SECONDS) for unit in _UNITS}
    worst = max(growth, key=lambda unit: growth[unit])
    return [
        at_most("time for 8 times as much hostile text", growth[worst], "times", _MOST_GROWTH, f"worst: {worst!r} repeated")
    ]


def _seconds(unit: str, size: int) -> float:
    """Return the processor time of parsing, the least of some attempts: it hardly depends on what else runs."""
    source = unit * (size // len(unit))
    times = []
    for _ in range(_ATTEMPTS):
        start = time.process_time()
        parse_markdown(source)
        times.append(time.process_time() - start)
    return min(times)
