"""Figures with their targets: one table in markdown, and JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_MET = {True: "yes", False: "**no**", None: ""}


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. `value` is None where it could not be measured; `note` then says why.

    `target` is shown beside it (empty: there is none); `met` is None where there is nothing to meet.
    """

    name: str
    value: float | None
    unit: str
    target: str = ""
    met: bool | None = None
    note: str = ""


def at_most(name: str, value: float, unit: str, bound: float, note: str = "") -> Figure:
    """Return a figure that is to be `bound` or less."""
    return Figure(name, value, unit, f"≤ {shown(bound)}", value <= bound, note)


def at_least(name: str, value: float, unit: str, bound: float, note: str = "") -> Figure:
    """Return a figure that is to be `bound` or more."""
    return Figure(name, value, unit, f"≥ {shown(bound)}", value >= bound, note)


def missing(name: str, unit: str, why: str, target: str = "") -> Figure:
    """Return a figure that could not be measured, and the reason."""
    return Figure(name, None, unit, target, None, why)


def shown(value: float | None) -> str:
    """Return a value as a reader wants it: three significant digits, thousands apart."""
    if value is None:
        return "not measured"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{digits}f}" if abs(value) >= 0.1 else f"{value:.2g}"


def table(parts: Mapping[str, Sequence[Figure]]) -> str:
    """Return one table in markdown of the figures of each part."""
    rows = [("part", "figure", "value", "target", "met", "note"), ("---", "---", "---:", "---", "---", "---")]
    for part, figures in parts.items():
        for figure in figures:
            value = f"{shown(figure.value)} {figure.unit}".strip() if figure.value is not None else shown(None)
            rows.append((part, figure.name, value, figure.target, _MET[figure.met], figure.note))
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)


def write_json(path: Path, machine: Mapping[str, str], parts: Mapping[str, Sequence[Figure]]) -> None:
    """Write the machine and all figures to a file."""
    record = {
        "measured": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": dict(machine),
        "parts": {part: [asdict(figure) for figure in figures] for part, figures in parts.items()},
    }
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def say(text: str) -> None:
    """Print a line of progress, apart from the table."""
    print(f"  … {text}", file=sys.stderr, flush=True)
