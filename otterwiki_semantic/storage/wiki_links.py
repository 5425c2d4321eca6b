"""Wikilinks of notes, which name a page without its directory. Their targets depend on all pages.

The table `links` has two rows for each wikilink: ``[[name|key``, and the key of the target page, or the name if there is none.
"""

from __future__ import annotations

import sqlite3

from otterwiki_semantic.content.analysis import name_key
from otterwiki_semantic.content.pages import namespaced
from otterwiki_semantic.storage.schema import NEXT_REVISION

_NAMED = "SELECT DISTINCT target FROM links WHERE target >= '[[' AND target < '[\\'"
_BY_ALIAS = (
    "SELECT path_key FROM names JOIN pages USING (path) WHERE key = ? AND ordinal = -1 ORDER BY length(path), path LIMIT 1"
)


def resolve_wiki_links(connection: sqlite3.Connection) -> None:
    """Set each wikilink's target to the page of its name with the shortest path, or else a page with this title or alias."""
    is_changed = False
    pages: dict[str, str] = {}
    for (key,) in sorted(connection.execute("SELECT path_key FROM pages"), key=lambda row: (row[0].count("/"), *row)):
        parts = namespaced(key).split("/")
        for start in range(len(parts)):
            pages.setdefault("/".join(parts[start:]), key)
    for (link,) in connection.execute(_NAMED).fetchall():
        name, _, before = link[2:].partition("|")
        target = pages.get(name)
        if target is None:
            by_alias = connection.execute(_BY_ALIAS, (name_key(name),)).fetchone()
            target = by_alias[0] if by_alias else name
        if target != before:
            is_changed = True
            of_link = "SELECT path FROM links WHERE target = ?"
            connection.execute(f"DELETE FROM links WHERE target = ? AND path IN ({of_link})", (before, link))
            connection.execute("INSERT OR IGNORE INTO links SELECT path, ? FROM links WHERE target = ?", (target, link))
            renamed = f"[[{name}|{target}"
            connection.execute("UPDATE OR REPLACE links SET target = ? WHERE target = ?", (renamed, link))
    if is_changed:
        connection.execute(NEXT_REVISION)
