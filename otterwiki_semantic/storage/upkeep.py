"""Keeps a catalog's file small, and tells whether its tables fit together: what no page and no search asks of it."""

from __future__ import annotations

from otterwiki_semantic.core.errors import CatalogCorruptError
from otterwiki_semantic.storage.sqlite import SqliteFile

_MERGE = "INSERT INTO keywords (keywords, rank) VALUES ('merge', ?)"
_PAGES_A_PASSAGE, _PAGES_AT_A_TIME = 2, 512
"""Pages of FTS5 (4 KB) that are merged for each passage that has gone, and how many at a time, which is some 30 ms."""
_CHANGES_OF_A_MERGE = 2
"""Fewer changes tell that there was nothing to merge."""
_MISFIT = """
SELECT CASE
    WHEN (SELECT COUNT(*) FROM chunks) != (SELECT COALESCE(SUM(chunk_count), 0) FROM pages) THEN 'it lacks passages of pages'
    WHEN EXISTS (SELECT id FROM chunks EXCEPT SELECT id FROM keywords_docsize) THEN 'it lacks words of passages'
    WHEN EXISTS (SELECT vector FROM chunks EXCEPT SELECT id FROM vectors) THEN 'it lacks vectors of passages'
END"""


class Upkeep:
    """The upkeep of one catalog's file. Errors: those of `SqliteFile`."""

    def __init__(self, database: SqliteFile) -> None:
        self._database = database
        self._pages_to_merge = 0

    def count_gone(self, passages: int) -> None:
        """Note that passages have gone, within the transaction that removed them."""
        self._pages_to_merge += _PAGES_A_PASSAGE * passages

    def tidy(self) -> None:
        """Give room back to the disk that is not needed any more, as far as that takes only a moment.

        FTS5 keeps the words of a passage that has gone until it merges the segments that hold them, which it does by itself
        only when there are several of a size. So a little more of the keyword index is merged than was rewritten: what was
        begun first, then all that there is.
        """
        pages = min(self._pages_to_merge, _PAGES_AT_A_TIME)
        if pages:
            with self._database.write() as connection:
                before = connection.total_changes
                connection.execute(_MERGE, (pages,))
                if connection.total_changes - before < _CHANGES_OF_A_MERGE:
                    connection.execute(_MERGE, (-pages,))
                self._pages_to_merge -= pages
        self._database.tidy()

    def check(self) -> None:
        """See that the tables fit together, and the keyword index its words; `CatalogCorruptError` if they do not.

        For a catalog that lacks no vectors, and that nobody else writes to meanwhile: it is locked.
        """
        with self._database.write() as connection:
            connection.execute("INSERT INTO keywords (keywords) VALUES ('integrity-check')")
            misfit = connection.execute(_MISFIT).fetchone()[0]
        if misfit:
            raise CatalogCorruptError(f"the catalog {self._database.path} is damaged: {misfit}")
