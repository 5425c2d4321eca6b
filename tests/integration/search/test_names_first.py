"""An exact page title, heading or rare identifier ranks first, however it is spelled."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from otterwiki_semantic.content.analysis.tokenizer import name_key
from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.content.pages.page import page_name, page_title
from otterwiki_semantic.core.records import Mode, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support.engines import opened
from tests.support.live_wiki import demo_pages, make_repository

Pages = dict[str, str | bytes]

EACH = 10
"""Each tenth page is asked for."""


def generated() -> Pages:
    """Pages of few words, used again and again, so that every name is nearly another one."""
    draw = random.Random(7)
    nouns = ("backup", "restore", "plan", "disk", "server", "alert", "mail", "queue", "index", "page", "search")
    words = [*nouns, "user", "group", "access", "token", "report"]
    pages: Pages = {}
    for number in range(30):
        folder, name = draw.choice(words), f"{draw.choice(words)}-{draw.choice(words)}-{number}"
        text = [" ".join(draw.choices(words, k=40)).capitalize() + "." for _ in range(3)]
        section = f"{draw.choice(words)} {draw.choice(words)} {draw.choice(words)} {number}".title()
        identifier = f"set_{draw.choice(words)}_{draw.choice(words)}_{number}"
        title = f"{draw.choice(words)} {draw.choice(words)} No {number}".title()
        pages[f"{folder}/{name}.md"] = (
            f"# {title}\n\n{text[0]}\n\n## {section}\n\n{text[1]}\n\n## Notes\n\n`{identifier}` {text[2]}\n"
        )
    return pages


@pytest.fixture(scope="module", params=["demo", "generated"])
def wiki(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[IndexEngine, Pages, Pages]]:
    """An index, its pages, and those that are asked for."""
    if request.param == "demo":
        pages = demo_pages()
        yield request.getfixturevalue("demo"), pages, dict(sorted(pages.items())[::EACH])
        return
    pages, place = generated(), tmp_path_factory.mktemp("names")
    index = opened(Settings(make_repository(place / "repository", pages), place / "index", pages=()))
    yield index, pages, dict(list(pages.items())[:: EACH // 2])
    index.close()


def spellings(name: str) -> set[str]:
    joined = re.sub(r"[\W_]+", " ", name).strip()
    return {name, name.upper(), name.lower(), joined.replace(" ", "-"), joined.replace(" ", "_"), f"  {name}? "}


def first(index: IndexEngine, query: str, mode: Mode = Mode.HYBRID) -> str:
    return index.search([query], SearchOptions(n=3, mode=mode))[0].results[0].path


def names(pages: Pages) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """The pages by the keys of their titles and names, and by those of their headings."""
    titles: dict[str, set[str]] = {}
    headings: dict[str, set[str]] = {}
    for file, content in pages.items():
        path = file.removesuffix(".md")
        document = parse_markdown(content.decode() if isinstance(content, bytes) else content)
        for title in {page_title(path, document), page_name(path)}:
            titles.setdefault(name_key(title), set()).add(path)
        for section in document.sections:
            if section.level:
                headings.setdefault(name_key(section.heading), set()).add(path)
    return titles, headings


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.KEYWORD])
def test_a_title_or_a_page_name_is_first(wiki: tuple[IndexEngine, Pages, Pages], mode: Mode) -> None:
    index, pages, wanted = wiki
    titles, _ = names(pages)
    wrong = []
    for file, content in wanted.items():
        path = file.removesuffix(".md")
        document = parse_markdown(content.decode() if isinstance(content, bytes) else content)
        for name in {page_title(path, document), page_name(path)}:
            wrong += [query for query in spellings(name) if first(index, query, mode) not in titles[name_key(name)]]
    assert wrong == []


def test_a_heading_is_among_the_first_and_mostly_the_first(wiki: tuple[IndexEngine, Pages, Pages]) -> None:
    index, pages, wanted = wiki
    titles, headings = names(pages)
    asked, second, wrong = 0, [], []
    for content in wanted.values():
        for section in parse_markdown(content.decode() if isinstance(content, bytes) else content).sections:
            key = name_key(section.heading)
            if not key:
                continue
            expected = titles.get(key) or headings[key]
            for query in spellings(section.heading):
                found = [hit.path for hit in index.search([query], SearchOptions(n=3))[0].results]
                asked += 1
                second += [] if found[0] in expected else [query]
                wrong += [] if expected.intersection(found) else [query]
    assert wrong == []
    assert len(second) <= 0.05 * asked, second


def test_a_rare_identifier_is_first(wiki: tuple[IndexEngine, Pages, Pages]) -> None:
    index, pages, _ = wiki
    found: dict[str, set[str]] = {}
    for file, content in pages.items():
        text = content.decode() if isinstance(content, bytes) else content
        for identifier in re.findall(r"\b[a-z]+[_-][a-z0-9_]+[a-z0-9]\b|\b[A-Z]{2,}-\d+\b|\b10\.\d+\.\d+\.\d+\b", text):
            found.setdefault(identifier, set()).add(file.removesuffix(".md"))
    rare = {identifier: paths for identifier, paths in found.items() if len(paths) == 1}
    assert len(rare) >= 20
    wrong = []
    for identifier, paths in list(rare.items())[::2]:
        variants = {identifier, identifier.upper(), identifier.replace("_", "-"), identifier.replace("-", "_")}
        wrong += [query for query in variants if first(index, query) not in paths]
    assert wrong == []
