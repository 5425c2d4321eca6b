"""Suggest links for a text that is being written: pages that it names, and pages on the same subject."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import pairwise

from msgspec import structs
from rapidfuzz.distance import OSA

from otterwiki_semantic.content.analysis import name_key, stem
from otterwiki_semantic.content.pages import find_links, page_key, page_name, prose
from otterwiki_semantic.core.parameter_parsing import MAX_QUERY_CHARACTERS
from otterwiki_semantic.core.records import LikelyDuplicate, Mention, PageUrls, RelatedPage, SuggestedLabel, SuggestRequest
from otterwiki_semantic.embedding import is_common_word
from otterwiki_semantic.search.best_unit import Embed
from otterwiki_semantic.search.related import pages_near
from otterwiki_semantic.search.similarity_scale import Scale, spread_evenly
from otterwiki_semantic.search.suggest import suggest
from otterwiki_semantic.storage import Catalog, Generation, LabelTable

_WORD = re.compile(r"\w+(?:['’.]\w+)*")
_BETWEEN_WORDS = re.compile(r"[ \t]*+(?:[^\S \t]|[&/'’-])[ \t]*+|[ \t]++")
"""What may separate two words of a name; a line break may, an empty line may not."""
_MOST_WORDS, _MOST_MENTIONS = 8, 20
_LEAST_LETTERS = 3
_LEAST_STEM, _LONGEST_ENDING = 4, 3
"""Least letters of a stem that is compared, and the most letters by which two forms of a name may differ in length."""
_PARAGRAPHS = 8
"""Paragraphs that are embedded: those around the cursor, and others evenly spread."""
_NEAR_CURSOR = 3
_MAX_PARAGRAPH = 1_000
"""Characters of a paragraph that are embedded."""
_MIN_WORDS = 4
"""Shorter paragraphs are too vague."""
_FLOOR = 0.45
"""The least similarity, on the bundled model's scale, of a page to one of the paragraphs."""
_DUPLICATE, _BEGUN_WORDS, _MOST_DUPLICATES = 0.55, 200, 3
"""The least similarity of a likely duplicate, the words below which a draft counts as new, and the most duplicates."""
_SUGGESTED, _SIMILAR = 10, 0.8
"""Names compared with the name of a new page, and the share of letters that similar names have in common."""
_TITLE = re.compile(r"^# +(\S.*)$", re.MULTILINE)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


def find_mentions(catalog: Catalog, text: str, path: str, languages: Sequence[str], urls: PageUrls) -> tuple[Mention, ...]:
    """Return the phrases of a text that name a page, one per page, without the page at `path` and pages already linked.

    Titles and aliases match in any case and with other endings in one of the `languages`. A single word must match the title
    exactly, unless it is rare. Links, code, headings and front matter are skipped. Raises errors of the catalog.
    """
    markdown = text.replace("\r", " ")  # of the same length, with the line ends of a repository
    with catalog.snapshot():
        phrases = list(_phrases(catalog.labels, markdown, languages))
        path_of = catalog.pages.paths({page for _, _, page in phrases})
        titles = catalog.pages.titles(path_of.values())
    named_keys = {page_key(each) for each in path_of.values()}
    known = {page_key(path), *find_links(markdown, path, named_keys, page_first=urls.links_begin_with_page)}
    found: dict[str, Mention] = {}
    for start, end, page in phrases:
        named = path_of[page]
        title, _, kind = titles[named]
        if kind is None and named not in found and page_key(named) not in known and _is_meant(markdown[start:end], title):
            phrase = text[start:end]
            found[named] = Mention(start, end, phrase, named, title, urls.of(named), urls.link(named, phrase))
    return tuple(found.values())[:_MOST_MENTIONS]


def _is_meant(phrase: str, title: str) -> bool:
    """Whether a phrase refers to the page that it names; a single word may be an everyday one."""
    if sum(map(str.isalpha, phrase)) < _LEAST_LETTERS:
        return False
    if len(_WORD.findall(phrase)) > 1:
        return True
    return (phrase == title and phrase != phrase.lower()) or not is_common_word(phrase.casefold())


def _phrases(labels: LabelTable, text: str, languages: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Yield the longest names in a text that belong to exactly one page, in order: start, end, and the page's number."""
    words = list(_WORD.finditer(prose(text)))
    # A text may repeat its words thousands of times.
    begins_name, pages_named = cache(labels.begins_name), cache(labels.pages_named)
    pages_inflected = cache(partial(_pages_inflected, labels, languages))
    at = 0
    while at < len(words):
        run, keys = [words[at]], ["", name_key(words[at][0])]
        for word in words[at + 1 : at + _MOST_WORDS]:
            if not begins_name(keys[-1]) or not _BETWEEN_WORDS.fullmatch(text, run[-1].end(), word.start()):
                break
            run.append(word)
            keys.append(name_key(text[run[0].start() : word.end()]))
        for number in range(len(keys) - 1, 0, -1):
            pages = pages_named(keys[number])
            if not pages and (number > 1 or not is_common_word(keys[number])):
                pages = pages_inflected(keys[number - 1], keys[number])
            if len(pages) == 1:
                yield run[0].start(), run[number - 1].end(), next(iter(pages))
                at += number
                break
        else:
            at += 1


def _pages_inflected(labels: LabelTable, languages: Sequence[str], before: str, key: str) -> set[int]:
    """Return the pages whose name differs from a key only by the ending of the last word, which follows `before`."""
    pages: set[int] = set()
    for language in languages:
        stemmed = stem(key[len(before) :], language)
        if len(stemmed) < _LEAST_STEM:
            continue
        for name in labels.keys_beginning(before + stemmed[:-1]):  # "policy" has the stem "polici"
            if abs(len(name) - len(key)) <= _LONGEST_ENDING and stem(name[len(before) :], language) == stemmed:
                pages |= labels.pages_named(name)
    return pages


def pages_about(
    generation: Generation, text: str, cursor: int | None, path: str, n: int, embed: Embed, scale: Scale, urls: PageUrls
) -> tuple[RelatedPage, ...]:
    """Return the pages nearest in meaning to a text, without the page at `path`; `embed` returns the vectors of paragraphs.

    Raises errors of the model, of the catalog and of ChromaDB.
    """
    markdown = text.replace("\r", " ")  # of the same length, with the line ends of a repository
    paragraphs = _paragraphs(markdown)
    if not paragraphs:
        return ()
    chosen = _chosen(paragraphs, len(text) if cursor is None else cursor)
    own = list(range(len(chosen))), embed(chosen)
    floor = scale.from_bundled(_FLOOR)
    found = pages_near(generation, own, path, (), n, scale, urls, pairs=1)
    near = [page for page in found if page.similarity >= floor]
    linked = find_links(markdown, path, {page_key(page.path) for page in near}, page_first=urls.links_begin_with_page)
    return tuple(structs.replace(page, linked=page_key(page.path) in linked) for page in near)


def likely_duplicates(
    catalog: Catalog, text: str, path: str, pages: Sequence[RelatedPage], scale: Scale, urls: PageUrls
) -> tuple[LikelyDuplicate, ...]:
    """Return the pages that a new page might duplicate, or none for a longer text.

    Pages with a similar name come first, then very similar ones among `pages`. Raises errors of the catalog.
    """
    if len(text.split()) > _BEGUN_WORDS:
        return ()
    floor = scale.from_bundled(_DUPLICATE)
    heading = _TITLE.search(text)
    names = filter(None, (heading[1] if heading else "", page_name(path)))
    titles = {each.path: each.title for name in names for each in _pages_of_similar_name(catalog, name)}
    near = {page.path: page for page in pages if page.similarity >= floor and page.kind is None}
    titles |= {page.path: page.title for page in near.values()}
    return tuple(
        LikelyDuplicate(
            name=page_name(other),
            path=other,
            title=title,
            similarity=near[other].similarity if other in near else None,
            url=urls.of(other),
            link=urls.link(other, title),
        )
        for other, title in titles.items()
        if page_key(other) != page_key(path)
    )[:_MOST_DUPLICATES]


def _pages_of_similar_name(catalog: Catalog, name: str) -> list[SuggestedLabel]:
    """Return the pages whose title, or last part of the path, is spelled like a name."""
    key = name_key(name)
    return [
        label
        for label in suggest(catalog, SuggestRequest(name[:MAX_QUERY_CHARACTERS], _SUGGESTED))
        if label.kind == "page"
        and label.file is None
        and any(OSA.normalized_similarity(key, name_key(other)) >= _SIMILAR for other in (label.title, page_name(label.path)))
    ]


def _paragraphs(text: str) -> list[tuple[int, str]]:
    """Return the paragraphs of a text that are long enough, with their positions."""
    starts = [0, *(match.end() for match in _BLANK_LINE.finditer(text)), len(text)]
    parts = [(start, text[start:end].strip()[:_MAX_PARAGRAPH]) for start, end in pairwise(starts)]
    return [(start, part) for start, part in parts if len(part.split()) >= _MIN_WORDS]


def _chosen(paragraphs: Sequence[tuple[int, str]], cursor: int) -> list[str]:
    """Return the paragraphs to embed, in order: the nearest to the cursor, and others evenly spread."""
    near = sorted(range(len(paragraphs)), key=lambda number: abs(paragraphs[number][0] - cursor))[:_NEAR_CURSOR]
    return [paragraphs[number][1] for number in sorted({*near, *spread_evenly(len(paragraphs), _PARAGRAPHS - len(near))})]
