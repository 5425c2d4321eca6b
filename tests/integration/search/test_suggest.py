"""Suggestions of the demo wiki, whose short sections are merged."""

from __future__ import annotations

from otterwiki_semantic.content.markdown import parse_markdown
from otterwiki_semantic.core.records import Filters, PageListRequest, SuggestRequest
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support.live_wiki import demo_pages


def test_every_section_of_the_demo_wiki_is_suggested_with_its_anchor(demo: IndexEngine) -> None:
    sources = demo_pages()
    looked_for = 0
    for page in demo.pages(PageListRequest()).pages:
        source = sources[f"{page.path}.md"]
        text = source.decode() if isinstance(source, bytes) else source
        for section in parse_markdown(text).sections:
            if section.heading and section.heading != page.title:
                request = SuggestRequest(section.heading, 50, Filters(path=page.path))
                found = {(each.path, each.section, each.anchor) for each in demo.suggest(request).suggestions}
                assert (page.path, section.heading, section.anchor) in found
                looked_for += 1
    assert looked_for > 50


def test_every_page_of_the_demo_wiki_is_suggested_first_by_its_title(demo: IndexEngine) -> None:
    for page in demo.pages(PageListRequest()).pages:
        best = demo.suggest(SuggestRequest(page.title)).suggestions
        same = [each for each in best if each.kind == "page" and each.title == page.title]
        assert page.path in {each.path for each in same}
        assert best[0].title == page.title
        assert best[0].ranges == ((0, len(page.title)),)
