"""Measure what the project promises: make bench [PARTS="build disk"] [BASE=COMMIT] [SMALL=1] [FRESH=1] [ARGS="--json FILE"].

Every part is a module of ``benchmarks.parts`` whose `measure` yields figures, each with its target. Progress goes to
standard error, one table in markdown to standard output. Generated wikis and their indexes are kept in ``.bench``.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
from pathlib import Path

from benchmarks.support.machine import busy, describe
from benchmarks.support.options import LARGE_PAGES, MANY_PASSAGES, SMALL_PAGES, Options
from benchmarks.support.report import Figure, say, table, write_json

PARTS = {
    "parsing": "time of parsing hostile text",
    "saves": "a save with and without the plugin, and when it is found",
    "embedding": "embedding against sentence-transformers on PyTorch, and against the processor's limit",
    "rerank": "a cross-encoder that reads the best passages again",
    "reading": "reading pages until they are found by their words, by stage",
    "attached": "attached PDFs: reading speed, and searches while they are read",
    "build": "a first build, a reindex, and a sync that finds nothing to do",
    "folders": "following a folder of 10,000 notes",
    "recall": "what the approximate search for vectors misses",
    "disk": "bytes a chunk, and growth over thousands of edits",
    "growth": "build, memory and search at three sizes",
    "install": "what is installed, and how large it is",
    "promises": "what readers notice on one screen, in turns with the commit BASE",
    "searching": "searches over HTTP, with filters, and by several clients at once; suggestions with every key",
    "edits": "when an edited section is found",
    "host": "what the plugin adds to the wiki's start, views and saves",
    "contention": "searches and a build at the same time",
    "responsive": "the wiki's views while an index is built",
    "memory": "memory of the index's process, and of the wiki's",
    "typing": "when the palette and the search page show what was found, after the last key",
    "mapping": "making the map of the wiki, and drawing it",
    "server": "ChromaDB in the index's process and on a server of its own: memory, disk, filling, searches",
    "monitoring": "what figures for Prometheus cost a search, and giving them",
    "sessions": "how many queries of a session need not be embedded",
    "tasks": "twelve tasks in the palette and in the wiki's own search",
    "agents": "calls and tokens that an agent spends on a question",
    "million": "a wiki of a million passages: build, memory, disk, searches, edits, starts",
}
"""The parts, by the names of their modules, in the order they are run."""
_ON_REQUEST = {"million"}
"""Parts that are only run if they are named: they take an hour."""

_TOO_BUSY = 0.1


def main() -> int:
    """Run the parts asked for, print the table; gives 1 if a part failed, whatever its figures say."""
    parser = _parser()
    arguments = parser.parse_args()
    if unknown := [part for part in arguments.part if part not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; there are: {', '.join(PARTS)}")
    if arguments.base and not arguments.part:
        arguments.part = ["promises"]
    options = Options(
        small=arguments.small,
        small_pages=arguments.pages,
        large_pages=arguments.large_pages,
        passages=arguments.passages,
        edits=arguments.edits,
        rounds=arguments.rounds,
        fresh=arguments.fresh,
        repository=arguments.repository,
        wikis=arguments.wikis,
        base=arguments.base,
        picture=arguments.picture,
    )
    machine = describe()
    print("\n".join(f"- {name}: {value}" for name, value in machine.items()), end="\n\n", flush=True)
    figures, failed = _run(arguments.part or [part for part in PARTS if part not in _ON_REQUEST], options)
    print(table(figures))
    if arguments.json:
        write_json(arguments.json, machine, figures)
    if failed:
        print(f"\nnot measured, because of an error: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _run(parts: list[str], options: Options) -> tuple[dict[str, list[Figure]], list[str]]:
    """Return the figures of each part that could be measured, and the names of those that could not."""
    figures: dict[str, list[Figure]] = {}
    failed = []
    for number, part in enumerate(parts, 1):
        print(f"[{number}/{len(parts)}] {part}: {PARTS[part]}", file=sys.stderr, flush=True)
        if (share := busy()) > _TOO_BUSY:
            say(f"other processes take {share:.0%} of the processors: the times are not those of this machine alone")
        start = time.perf_counter()
        try:
            figures[part] = list(importlib.import_module(f"benchmarks.parts.{part}").measure(options))
        except Exception:  # noqa: BLE001 - the other parts go on
            traceback.print_exc()
            failed.append(part)
        print(f"  {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return figures, failed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", nargs="*", metavar="PART", help=f"what to measure (all but million): {', '.join(PARTS)}")
    parser.add_argument("--small", action="store_true", help="leave out the large wiki")
    parser.add_argument("--pages", type=int, default=SMALL_PAGES, help="pages of the small wiki (%(default)s)")
    parser.add_argument("--large-pages", type=int, default=LARGE_PAGES, help="pages of the large wiki (%(default)s)")
    parser.add_argument("--passages", type=int, default=MANY_PASSAGES, help="passages of the part million (%(default)s)")
    parser.add_argument("--edits", type=int, default=5_000, help="page edits to measure the index's growth over (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of the two sides of a ratio (%(default)s)")
    parser.add_argument("--fresh", action="store_true", help="build the kept indexes again")
    parser.add_argument("--repository", type=Path, metavar="DIR", help="a wiki's git repository, for the part reading")
    parser.add_argument("--wikis", type=Path, metavar="DIR", help="a directory of judged wikis, for the part agents")
    parser.add_argument("--base", metavar="COMMIT", help="a commit to compare with, for the part promises")
    parser.add_argument("--picture", type=Path, metavar="DIR", help="draw the pictures, as PNG and SVG into a directory")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
