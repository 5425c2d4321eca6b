"""The chunker's promises on real pages: no chunk exceeds the model's window, and no word that a reader sees is lost."""

from __future__ import annotations

import io
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from benchmarks.options import Options
from benchmarks.processes import in_fresh_process
from benchmarks.report import Figure, at_most
from otterwiki_semantic.content.chunking.chunker import Profile
from otterwiki_semantic.content.pages.page import read_page
from otterwiki_semantic.core.records import Page
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.support.live_wiki import make_repository

_WORD = re.compile(r"\w+")
_FENCE = re.compile(r"^(\s*(?:>\s*)*(?:`{3,}|~{3,})).*$", re.MULTILINE)


def measure(options: Options) -> list[Figure]:
    """Give the largest chunk, the words lost, and the speed of reading, for each wiki."""
    return in_fresh_process(_measure_wikis, options.wikis)


def _measure_wikis(wikis: Sequence[Path]) -> list[Figure]:
    """Measure in the process that calls, which imports the wiki for its renderer."""
    model = BundledModel()
    model.open()
    with tempfile.TemporaryDirectory() as name:
        renderer = _renderer(Path(name))
        return [figure for wiki in wikis for figure in _measure_wiki(wiki, model, renderer)]


def _measure_wiki(directory: Path, model: BundledModel, renderer: Any) -> Iterator[Figure]:
    sources = {path: path.read_bytes() for path in sorted(directory.rglob("*.md"))}
    start = time.perf_counter()
    pages = [read_page(path.stem, "", content, model, Profile()) for path, content in sources.items()]
    seconds = time.perf_counter() - start
    texts = [chunk.text for page in pages for chunk in page.chunks]
    size = f"{directory.name}: {len(pages)} pages, {len(texts)} chunks"
    largest = max(model.count_tokens(texts)) + 2
    yield at_most("largest chunk", largest, "word pieces", model.max_tokens, size)
    missing: Counter[str] = Counter()
    shown = 0
    for page, content in zip(pages, sources.values(), strict=True):
        words = _shown_words(renderer, content.decode(errors="replace"))
        shown += len(words)
        missing.update(_without(words, page))
    examples = f"; such as {', '.join(word for word, _ in missing.most_common(5))}" if missing else ""
    yield at_most("words shown, in no chunk", missing.total(), f"of {shown:,}", 0, size + examples)
    yield Figure("read, parse and chunk", len(texts) / seconds, "chunks/s", note=f"{len(pages) / seconds:.0f} pages/s")


def _without(words: Iterable[str], page: Page) -> Iterable[str]:
    """Give those of the words that no chunk of the page holds."""
    held = set(_WORD.findall(" ".join(chunk.text for chunk in page.chunks)))
    return (word for word in words if word not in held)


def _renderer(place: Path) -> Any:
    """Give the wiki's own markdown renderer; the wiki is imported without the plugin, which would start an index."""
    import otterwiki.plugins

    otterwiki.plugins.plugin_manager.unregister(name="semantic")
    os.environ.update(REPOSITORY=str(make_repository(place, {})), SECRET_KEY="0123456789abcdef0123456789")
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        from otterwiki.renderer import OtterwikiRenderer
        from otterwiki.server import app

    return OtterwikiRenderer(config=app.config)


def _shown_words(renderer: Any, source: str) -> list[str]:
    """Give the words of the page that a reader sees, without what the wiki adds: numbers of notes, titles of boxes."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(renderer.markdown(_FENCE.sub(r"\1", source))[0], "html.parser")
    for added in soup.select("#frontmatter, .quote-alert-header, sup a, .footnotes sup, .footnotes a.footnote"):
        added.decompose()
    joined = set(_WORD.findall(soup.get_text()))
    return [word for word in _WORD.findall(soup.get_text(" ")) if word in joined]
