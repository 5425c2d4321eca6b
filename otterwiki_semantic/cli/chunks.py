"""``otterwiki-semantic chunks``: show how pages are chunked, and the cost of embedding them, without embedding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from otterwiki_semantic.cli.common import NO_COMMIT, IndexPlace, index_options, print_json, progress_bar
from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.chunking import Profile, count_words
from otterwiki_semantic.content.pages import FRONT_MATTER, find_page, page_excluded, page_not_found
from otterwiki_semantic.core.records import Chunk, Indexed, Page
from otterwiki_semantic.core.settings import EXCLUDE, Settings
from otterwiki_semantic.embedding import Embedder, heading_path, open_embedder, profile_for, vector_id
from otterwiki_semantic.indexing import PageLoader
from otterwiki_semantic.search.evaluation import percentiles

_SIZES = ("characters", "words", "tokens")
Row = dict[str, Any]


@click.command("chunks")
@index_options
@click.option("--all", "is_all", is_flag=True, help="Divide all pages, and show the totals.")
@click.option(
    "--price",
    type=click.FloatRange(min=0),
    metavar="USD_PER_MILLION_TOKENS",
    help="Show what embedding these pages once costs at this price.",
)
@click.argument("pages", metavar="[PAGE]...", nargs=-1)
def chunks_command(place: IndexPlace, pages: tuple[str, ...], price: float | None, *, is_all: bool, as_json: bool) -> None:
    """Show the passages of each PAGE with their sizes, or the totals for --all pages.

    Uses the configured model and chunk profile. Nothing is embedded, and no server is contacted. Characters and words are
    counted without the heading path; tokens are what the model reads.
    """
    if bool(pages) == is_all:
        raise click.UsageError("PAGE and --all cannot be combined" if is_all else "name a PAGE, or use --all")
    settings = place.settings()
    with _opened(settings) as embedder:
        report = _divided(settings, pages, embedder, price)
    if as_json:
        print_json(report.to_dict())
    else:
        click.echo(report.to_text(with_rows=not is_all))
    for each in report.pages:
        if each["problem"]:
            click.echo(f"{each['path']}: {each['problem']}", err=True)
    if embedder.asks_server and not embedder.dimension and not settings.model_window:
        assumed = f"The window of {embedder.name} is not known yet; {embedder.window} tokens are assumed."
        click.echo(f"{assumed} Set SEMANTIC_MODEL_WINDOW, or build the index first.", err=True)


def _divided(settings: Settings, names: Sequence[str], embedder: Embedder, price: float | None) -> _Report:
    repository = Repository.of(settings)
    head = repository.head()
    if head is None:
        raise click.ClickException(NO_COMMIT)
    blobs = repository.page_blobs(head)
    if names:
        blobs = {path: blobs[path] for path in (_spelled(repository, head, name, blobs) for name in names)}
    files = repository.page_files(blobs)
    report = _Report(embedder, profile_for(embedder, settings.chunks), price)
    loader = PageLoader(repository, embedder, languages=settings.languages)
    pages = loader.load(files, report.profile)
    with closing(loader), progress_bar("dividing", pages, len(files), hidden=bool(names)) as bar:
        for page in bar:
            if names and page.indexed is Indexed.NOT:
                raise page_excluded(page.path, FRONT_MATTER)
            report.add(page)
    if not names:
        report.excluded += len(repository.excluded_pages(head))
    return report


def _spelled(repository: Repository, head: str, name: str, blobs: dict[str, str]) -> str:
    if path := find_page(name, blobs):
        return path
    if find_page(name, repository.excluded_pages(head)):
        raise page_excluded(name, EXCLUDE)
    raise page_not_found("the wiki", name.removesuffix(".md"), blobs)


@contextmanager
def _opened(settings: Settings) -> Iterator[Embedder]:
    """Yield the model with its tokenizer; nothing is written to the index's directory."""
    embedder = open_embedder(settings)
    if embedder.asks_server:
        yield embedder
        return
    with TemporaryDirectory(prefix="otterwiki-semantic-") as place:
        embedder = open_embedder(replace(settings, data_dir=Path(place)))
        embedder.prepare()
        yield embedder


class _Report:
    def __init__(self, embedder: Embedder, profile: Profile, price: float | None) -> None:
        self.profile = profile
        self.pages: list[Row] = []
        self.excluded = 0
        self._embedder = embedder
        self._price = price
        self._seen: set[str] = set()
        self._tokens_to_embed = 0

    def add(self, page: Page) -> None:
        """Add a page; a page excluded by its front matter is only counted."""
        if page.indexed is Indexed.NOT:
            self.excluded += 1
            return
        tokens = self._embedder.input_tokens([chunk.text for chunk in page.chunks])
        rows = [_row(chunk, count) for chunk, count in zip(page.chunks, tokens, strict=True)]
        self.pages.append({"path": page.path, "title": page.title, "problem": page.problem, "chunks": rows})
        if page.indexed is Indexed.FULLY:
            self._count_to_embed([chunk.text for chunk in page.chunks], tokens)
            paths = [path for path in map(heading_path, page.chunks) if path]
            self._count_to_embed(paths, self._embedder.input_tokens(paths))

    def _count_to_embed(self, texts: Sequence[str], tokens: Sequence[int]) -> None:
        """Count the tokens of texts that were not counted before: equal texts share one vector."""
        for text, count in zip(map(vector_id, texts), tokens, strict=True):
            if text not in self._seen:
                self._seen.add(text)
                self._tokens_to_embed += count

    def to_dict(self) -> Row:
        """Return the report for programs."""
        rows = [row for page in self.pages for row in page["chunks"]]
        return {
            "model": self._embedder.name,
            "window": self._embedder.window,
            "profile": {"name": self.profile.name, "unit": self.profile.unit, **self.profile.sizes},
            "pages": self.pages,
            "totals": {
                "pages": len(self.pages),
                "excluded_pages": self.excluded,
                "chunks": len(rows),
                "tokens": sum(row["tokens"] for row in rows),
                "tokens_to_embed": self._tokens_to_embed,
                "tokens_are_estimated": self._embedder.asks_server,
                "usd": self._usd,
            },
            "sizes": {name: _distribution([row[name] for row in rows]) for name in _SIZES if rows},
        }

    @property
    def _usd(self) -> float | None:
        return None if self._price is None else self._tokens_to_embed * self._price / 1e6

    def to_text(self, *, with_rows: bool) -> str:
        """Return the report for people; without rows, only the totals."""
        report = self.to_dict()
        totals = report["totals"]
        lines = []
        if with_rows:
            lines = ["".join(f"{name:>12}" for name in _SIZES) + "  passage"]
            lines += [_line(page["path"], row) for page in self.pages for row in page["chunks"]] + [""]
        excluded = f" ({self.excluded} excluded)" if self.excluded else ""
        about = "about " if self._embedder.asks_server else ""
        lines.append(
            f"{totals['pages']:,} pages{excluded}, {totals['chunks']:,} passages, {about}{totals['tokens']:,} tokens"
            f"{' (an estimate: the tokenizer is on the server)' if about else ''}"
        )
        sizes = ", ".join(f"{name} {size:,}" for name, size in self.profile.sizes.items() if size)
        lines.append(
            f"model {report['model']} (window {report['window']:,} tokens), profile {self.profile.name}: {sizes}"
            f" {self.profile.unit}"
        )
        if report["sizes"]:
            lines.append(f"{'':10}{'median':>10}{'95 %':>10}{'largest':>10}")
            lines += [f"{name:10}" + "".join(f"{size:10,}" for size in each.values()) for name, each in report["sizes"].items()]
        cost = f", ${self._usd:,.4f} at ${self._price:g} per million" if self._price is not None else ""
        lines.append(f"to embed once: {about}{self._tokens_to_embed:,} tokens{cost}")
        return "\n".join(lines)


def _row(chunk: Chunk, tokens: int) -> Row:
    text = chunk.text[chunk.prefix_length :]
    return {
        "section_path": chunk.section_path,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "characters": len(text),
        "words": count_words(text),
        "tokens": tokens,
    }


def _line(path: str, row: Row) -> str:
    sizes = "".join(f"{row[name]:12,}" for name in _SIZES)
    return f"{sizes}  {path}:{row['start_line']}-{row['end_line']}  {' > '.join(filter(None, row['section_path']))}".rstrip()


def _distribution(sizes: Sequence[int]) -> dict[str, int]:
    ranks = percentiles(sizes)
    return {"median": int(ranks["p50"]), "p95": int(ranks["p95"]), "max": max(sizes)}
