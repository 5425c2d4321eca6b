"""The pages of a catalog: lists of them, their paths and their links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from otterwiki_semantic.content.analysis import fold
from otterwiki_semantic.content.pages import page_name
from otterwiki_semantic.core.records import FileKind, Filters, Indexed, LastChange, ListedPage, PageLinks, PageSort
from otterwiki_semantic.storage.filters import page_filter
from otterwiki_semantic.storage.schema import IS_EMBEDDED, decode_list, iso_time
from otterwiki_semantic.storage.sqlite import IN_LIST, LAST_CHARACTER, SqliteFile

_ORDERS = {
    PageSort.PATH: "path",
    PageSort.TITLE: "title COLLATE NOCASE, path",
    PageSort.UPDATED: "updated DESC, path",
    PageSort.WORDS: "word_count DESC, path",
}
_NO_FILE = "path NOT IN (SELECT path FROM files)"


class PageFacts(NamedTuple):
    """The facts about a page that reports on the whole wiki need."""

    path: str
    key: str
    """The key that links use for the page; see `page_key`."""
    title: str
    updated: int | None
    """The time of the last commit that changed the page, in seconds since 1970."""
    blob: str
    language: str


class PageTable:
    """Reads the pages of a catalog. Raises the errors of `SqliteFile`."""

    def __init__(self, database: SqliteFile) -> None:
        self._database = database

    def find_path(self, path: str) -> str | None:
        """Return the stored spelling of a path, ignoring case; an exact match takes precedence."""
        paths = [row["path"] for row in self._database.select("SELECT path FROM pages WHERE path_key = ?", fold(path))]
        return path if path in paths else min(paths, default=None)

    def select(
        self, filters: Filters, limit: int, offset: int, sort: PageSort = PageSort.PATH
    ) -> tuple[tuple[ListedPage, ...], int]:
        """Return up to `limit` pages that pass, sorted and starting at `offset`, and the total number that pass."""
        where = page_filter(filters)
        columns = "path, title, category, tags, updated, word_count, kind"
        with self._database.snapshot():
            total = self._database.select(f"SELECT COUNT(*) FROM pages WHERE {where.sql}", *where.values)[0][0]
            found = f"SELECT {columns} FROM pages LEFT JOIN files USING (path) WHERE {where.sql}"
            statement = f"{found} ORDER BY {_ORDERS[sort]} LIMIT ? OFFSET ?"
            rows = self._database.select(statement, *where.values, limit, offset)
        return tuple(_listed(*row) for row in rows), total

    def titles(self, paths: Iterable[str]) -> dict[str, tuple[str, str | None, FileKind | None]]:
        """Return the title, time of last change and kind of pages and attached files, by path."""
        statement = f"SELECT path, title, updated, kind FROM pages LEFT JOIN files USING (path) WHERE path {IN_LIST}"
        rows = self._database.select(statement, paths)
        return {path: (title, iso_time(updated), kind and FileKind(kind)) for path, title, updated, kind in rows}

    def blobs(self, paths: Iterable[str] | None = None) -> dict[str, str]:
        """Return the blob ids of some or all pages, by path."""
        if paths is None:
            return self._database.mapping("SELECT path, blob FROM pages")
        return self._database.mapping(f"SELECT path, blob FROM pages WHERE path {IN_LIST}", paths)

    def excluded_blobs(self) -> dict[str, str]:
        """Return the blob id of each page that its front matter excludes, by path."""
        return self._database.mapping("SELECT path, blob FROM excluded_pages")

    def file_states(self) -> dict[str, Indexed]:
        """Return the indexed state of each attached file, by path. `excluded_blobs` has the files of excluded pages."""
        files = self._database.select("SELECT path FROM files")
        return self.states([row["path"] for row in files])

    def states(self, paths: Sequence[str]) -> dict[str, Indexed]:
        """Return the indexed state of pages, by path; unknown paths count as fully indexed."""
        excluded = self.excluded_blobs()
        statement = f"SELECT DISTINCT path FROM chunks WHERE path {IN_LIST} AND NOT {IS_EMBEDDED}"
        words_only = {row["path"] for row in self._database.select(statement, paths)}
        return {
            path: Indexed.NOT if path in excluded else Indexed.WORDS_ONLY if path in words_only else Indexed.FULLY
            for path in paths
        }

    def updated(self, paths: Sequence[str]) -> dict[str, int]:
        """Return the Unix times at which pages last changed, by path; unknown times are missing."""
        return self._database.mapping(f"SELECT path, updated FROM pages WHERE updated IS NOT NULL AND path {IN_LIST}", paths)

    def last_changes(self, paths: Sequence[str]) -> dict[str, LastChange]:
        """Return the last changes of pages, by path; unknown changes are missing."""
        columns = "path, updated, last_commit"
        rows = self._database.select(f"SELECT {columns} FROM pages WHERE updated IS NOT NULL AND path {IN_LIST}", paths)
        return {path: LastChange(*change) for path, *change in rows}

    def paths(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return the paths of pages, by number."""
        return self._database.mapping(f"SELECT number, path FROM pages WHERE number {IN_LIST}", numbers)

    def count_links(self, paths: Iterable[str]) -> dict[str, int]:
        """Return the number of pages that link to each of these pages, by path."""
        count = "SELECT COUNT(*) FROM links WHERE target = path_key"
        return self._database.mapping(f"SELECT path, ({count}) FROM pages WHERE path {IN_LIST}", paths)

    def problems(self) -> list[tuple[str, str]]:
        """Return the path of each page with an indexing problem and the reason, by path."""
        rows = self._database.select("SELECT path, problem FROM pages WHERE problem IS NOT NULL")
        return sorted(tuple(row) for row in rows)  # SQLite would read the pages in the order of their paths, which is slow

    def labels(self) -> list[tuple[str, str, str | None]]:
        """Return the path, title and category of every page except attached files, by path."""
        statement = f"SELECT path, title, category FROM pages WHERE {_NO_FILE} ORDER BY path"
        return [tuple(row) for row in self._database.select(statement)]

    def with_capitals(self) -> list[str]:
        """Return the path of every page except attached files whose path has capitals, or other characters that are folded."""
        rows = self._database.select(f"SELECT path FROM pages WHERE path != path_key AND {_NO_FILE}")
        return [row["path"] for row in rows]

    def facts(self) -> list[PageFacts]:
        """Return the facts about every page except attached files, by path."""
        columns = "path, path_key, title, updated, blob, language"
        return [PageFacts(*row) for row in self._database.select(f"SELECT {columns} FROM pages WHERE {_NO_FILE} ORDER BY path")]

    def all_links(self) -> list[tuple[str, str]]:
        """Return every link: the path of the page, and the key of the target, which need not exist."""
        statement = "SELECT path, target FROM links WHERE target NOT LIKE '[[%' ORDER BY target, path"
        return [tuple(row) for row in self._database.select(statement)]

    def links(self, path: str) -> PageLinks:
        """Return the pages that a page links to, and the pages that link to it."""
        outgoing = "SELECT pages.path FROM links JOIN pages ON path_key = target WHERE links.path = ? ORDER BY pages.path"
        incoming = "SELECT path FROM links WHERE target = ? ORDER BY path"
        with self._database.snapshot():
            found = self._database.select(outgoing, path), self._database.select(incoming, fold(path))
        return PageLinks(*(tuple(row["path"] for row in rows if row["path"] != path) for rows in found))

    def tags_beginning_with(self, text: str, n: int) -> list[tuple[str, int]]:
        """Return the `n` most frequent tags that begin with a text, ignoring case, with the number of pages of each."""
        key = fold(text)
        rows = self._database.select(
            "SELECT tag_key, COUNT(*) AS pages, tags FROM page_tags JOIN pages USING (path) WHERE tag_key >= ? AND tag_key < ? "
            "GROUP BY tag_key ORDER BY pages DESC, tag_key LIMIT ?",
            key,
            key + LAST_CHARACTER,
            n,
        )
        return [(next(tag for tag in decode_list(tags) if fold(tag) == found), pages) for found, pages, tags in rows]

    def link_targets(self, path: str) -> set[str]:
        """Return the keys of the pages that a page links to, including missing pages."""
        return {row["target"] for row in self._database.select("SELECT target FROM links WHERE path = ?", path)}


def _listed(
    path: str, title: str, category: str | None, tags: str, updated: int | None, words: int, kind: str | None
) -> ListedPage:
    when = iso_time(updated)
    counted, known = (when, words, when and when[:10], words), FileKind(kind) if kind else None
    return ListedPage(page_name(path), path, title, category, decode_list(tags), *counted, kind=known)
