"""What a catalog knows of pages as pages: lists of them, their paths and their links."""

from __future__ import annotations

from otterwiki_semantic.content.analysis import fold
from otterwiki_semantic.content.pages import page_name
from otterwiki_semantic.core.records import Filters, ListedPage, PageLinks
from otterwiki_semantic.storage.filters import Condition, page_conditions
from otterwiki_semantic.storage.reader import iso_time, load_list
from otterwiki_semantic.storage.sqlite import SqliteFile


class PageTable:
    """Reads a catalog. Errors: those of `SqliteFile`."""

    def __init__(self, database: SqliteFile) -> None:
        self._read = database.read

    def path_like(self, path: str) -> str | None:
        """Give the path of the page with this path, whatever its case; the very same if there is one."""
        with self._read() as connection:
            rows = connection.execute("SELECT path FROM pages WHERE path_key = ?", (fold(path),)).fetchall()
        paths = [str(row["path"]) for row in rows]
        return path if path in paths else min(paths, default=None)

    def pages(self, filters: Filters, limit: int, offset: int) -> tuple[tuple[ListedPage, ...], int]:
        """Give up to `limit` of the pages that pass, by path, from the one at place `offset` on; and how many pass."""
        scope = Condition.all_of(page_conditions(filters))
        where = f" WHERE {scope.text}" if scope.text else ""
        columns = "path, title, category, tags, updated, word_count"
        with self._read() as connection:
            total = connection.execute(f"SELECT COUNT(*) FROM pages{where}", scope.values).fetchone()[0]
            rows = connection.execute(
                f"SELECT {columns} FROM pages{where} ORDER BY path LIMIT ? OFFSET ?", (*scope.values, limit, offset)
            )
            return tuple(_listed(*row) for row in rows), total

    @property
    def is_empty(self) -> bool:
        """Whether there is no page."""
        with self._read() as connection:
            return connection.execute("SELECT 1 FROM pages LIMIT 1").fetchone() is None

    def labels(self) -> list[tuple[str, str, str | None]]:
        """Give path, title and category of every page, by path."""
        with self._read() as connection:
            return [tuple(row) for row in connection.execute("SELECT path, title, category FROM pages ORDER BY path")]

    def links(self, path: str) -> PageLinks:
        """Give the pages that a page links to, and those that link to it."""
        there = "SELECT pages.path FROM links JOIN pages ON path_key = target WHERE links.path = ? ORDER BY pages.path"
        here = "SELECT path FROM links WHERE target = ? ORDER BY path"
        with self._read() as connection:
            found = (connection.execute(there, (path,)), connection.execute(here, (fold(path),)))
            return PageLinks(*(tuple(row[0] for row in rows if row[0] != path) for rows in found))

    def links_of(self, path: str) -> set[str]:
        """Give the keys of the pages that a page links to."""
        with self._read() as connection:
            return {row["target"] for row in connection.execute("SELECT target FROM links WHERE path = ?", (path,))}


def _listed(path: str, title: str, category: str | None, tags: str, updated: int | None, words: int) -> ListedPage:
    when = None if updated is None else iso_time(updated)
    day = None if when is None else when[:10]
    return ListedPage(page_name(path), path, title, category, load_list(tags), when, words, day, words)
