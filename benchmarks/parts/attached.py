"""Attached PDFs of ten pages each: reading them, and searches while they are indexed."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from shutil import which
from textwrap import wrap

from benchmarks.support.corpus import page, questions
from benchmarks.support.local import opened
from benchmarks.support.options import Options
from benchmarks.support.processes import in_fresh_process, resident
from benchmarks.support.report import Figure
from benchmarks.support.wikis import scratch
from otterwiki_semantic.content.attachments import file_to_markdown
from otterwiki_semantic.core.records import FileKind, SearchOptions
from tests.support.attachments import image, pdf
from tests.support.live_wiki import make_repository

_FILES, _FEW_FILES, _PAGES, _SCANS = 500, 100, 10, 5


def measure(options: Options) -> Iterator[Figure]:
    """Yield the cost of a page, when all files are found by their words, and the time of a search until then."""
    count = _FEW_FILES if options.small else _FILES
    files = {f"page{number}/file{number}.pdf": _file(number) for number in range(count)}
    pages = {f"page{number}.md": f"# Page {number}\n" for number in range(count)}
    with scratch() as place:
        repository = make_repository(place / "repository", {**pages, **files})
        seconds, megabytes = in_fresh_process(_convert, list(islice(files.values(), 50)))
        yield Figure(
            "a page of a PDF becomes Markdown", 1000 * seconds, "ms of processor time", note=f"{megabytes:.0f} MB at most"
        )
        if which("tesseract"):
            yield Figure("a scanned page", in_fresh_process(_scan_seconds), "s of processor time")
        yield from in_fresh_process(_index, repository, place / "index", count)


def _file(number: int) -> bytes:
    """Return a PDF of about 450 words a page."""
    return pdf(*([f"# Chapter {at + 1}", *_paragraphs(number * _PAGES + at)] for at in range(_PAGES)))


def _paragraphs(number: int) -> list[str]:
    words = " ".join(line for line in page(number)[1].splitlines() if line[:1].isalpha()).replace("<", "").split()
    return [" ".join(words[start : start + 90]) for start in range(0, min(len(words), 450), 90)]


def _convert(files: list[bytes]) -> tuple[float, float]:
    """Return the seconds of processor time per page, and the memory in MB."""
    start = time.process_time()
    for file in files:
        file_to_markdown("a.pdf", FileKind.PDF, file, None)
    return (time.process_time() - start) / (_PAGES * len(files)), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _scan_seconds() -> float:
    """Return the processor time of a page of about 250 words with OCR."""
    scans = [image(*wrap(" ".join(_paragraphs(number)[:3]), 55), file_format="PDF") for number in range(_SCANS)]
    before = _processor_seconds()
    for scan in scans:
        file_to_markdown("a.pdf", FileKind.PDF, scan, "eng")
    return (_processor_seconds() - before) / _SCANS


def _index(repository: Path, data_dir: Path, count: int) -> list[Figure]:
    """Return when all files are found by their words, and how long searches take until then."""
    asked = iter(questions(10_000, count))
    times: list[float] = []
    start, before = time.monotonic(), _processor_seconds()
    with opened(repository, data_dir) as index:
        while index.status().attachments < count:
            begin = time.monotonic()
            index.search([next(asked)], SearchOptions())
            times.append(1000 * (time.monotonic() - begin))
            time.sleep(0.2)
        seconds, memory = time.monotonic() - start, resident()
    used = _processor_seconds() - before
    times.sort()
    note = f"p95 {times[int(0.95 * len(times))]:.0f} ms, {len(times)} searches"
    return [
        Figure("until all is found by its words", count * _PAGES / seconds, "pages/s", note=f"{count} files, {seconds:.0f} s"),
        Figure("the same, with the searches", 1000 * used / (count * _PAGES), "ms of processor time a page"),
        Figure("search while files are read", times[len(times) // 2], "ms", note=note),
        Figure("memory of the index's process", memory, "MB"),
    ]


def _processor_seconds() -> float:
    """Return the processor time of this process and of the processes that it has waited for."""
    return sum(os.times()[:4])
