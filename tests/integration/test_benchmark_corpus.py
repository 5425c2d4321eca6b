"""The generated wikis of the benchmarks have the sizes and frequencies that their figures assume."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.support.corpus import SELECTIVITY, page, path_of, questions, tags_of, write_pages
from otterwiki_semantic.content.chunking import Profile
from otterwiki_semantic.core.records import Page
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.support.chunks import read_page

PAGES = 60


@pytest.fixture(scope="module")
def corpus() -> dict[str, str]:
    return dict(page(number) for number in range(PAGES))


@pytest.fixture(scope="module")
def parsed(corpus: dict[str, str], model: BundledModel) -> list[Page]:
    return [read_page(path.removesuffix(".md"), "", text.encode(), model, Profile()) for path, text in corpus.items()]


def test_a_page_is_the_same_in_every_wiki_of_its_seed(tmp_path: Path) -> None:
    write_pages(tmp_path / "small", 5)
    write_pages(tmp_path / "large", 12)
    small = {path.relative_to(tmp_path / "small"): path.read_text() for path in (tmp_path / "small").rglob("*.md")}
    large = {path.relative_to(tmp_path / "large"): path.read_text() for path in (tmp_path / "large").rglob("*.md")}
    assert (len(small), len(large)) == (5, 12)
    assert small.items() <= large.items()
    assert page(3, seed=2)[1] != page(3)[1]


def test_pages_have_about_eight_chunks_and_many_sections(parsed: list[Page], corpus: dict[str, str]) -> None:
    assert 7 <= sum(len(each.chunks) for each in parsed) / PAGES <= 9
    sections = [len(re.findall(r"^###? ", source, re.MULTILINE)) for source in corpus.values()]
    assert min(sections) >= 3
    assert 8 <= max(sections) <= 14
    whole = "".join(corpus.values())
    assert all(mark in whole for mark in ("\n### ", "\n- ", "\n|---", "\n```\n"))


def test_tags_have_the_selectivity_they_are_named_for(parsed: list[Page]) -> None:
    for tag, share in SELECTIVITY.items():
        assert sum(tag in tags_of(number) for number in range(1000)) == 1000 * share
    assert [list(each.tags) for each in parsed] == [tags_of(number) for number in range(PAGES)]


def test_pages_link_to_earlier_pages(parsed: list[Page]) -> None:
    paths = [each.path for each in parsed]
    assert paths == [path_of(number) for number in range(PAGES)]
    assert len(set(paths)) == PAGES
    for number, each in enumerate(parsed):
        assert set(each.links_to) <= set(paths[:number])
        assert bool(each.links_to) == bool(number)


def test_words_follow_a_heavy_tailed_distribution(corpus: dict[str, str]) -> None:
    counts = Counter(re.findall(r"[a-z]{3,}", " ".join(corpus.values()).lower()))
    ranked = [count for _, count in counts.most_common()]
    assert ranked[0] > 5 * ranked[20] > 10 * ranked[300]
    assert sum(ranked[:100]) > 0.2 * sum(ranked)
    assert sum(count == 1 for count in ranked) > 0.3 * len(ranked)


def test_questions_are_distinct_and_made_of_a_pages_words(corpus: dict[str, str]) -> None:
    asked = questions(60, PAGES)
    assert len(set(asked)) == 60
    assert asked == questions(60, PAGES)
    assert all(3 <= len(question.split()) <= 9 for question in asked)
    assert len(set(asked) & set(questions(60, PAGES, seed=2))) < 3
    words = set(re.findall(r"[a-z]{3,}", " ".join(corpus.values()).lower()))
    added = set(re.findall(r"[a-z]{3,}", " ".join(asked))) - words
    assert added <= {"how", "what", "where", "keep", "does", "need", "without", "when", "changed", "difference", "between"}
