"""Wikilinks of notes, which name a page without its directory. Their targets depend on all pages.

The table `links` has two rows for each wikilink: ``[[name|key``, and the key of the target page, or the name if there is none.
"""

from __future__ import annotations

import sqlite3

from otterwiki_semantic.content.analysis import name_key
from otterwiki_semantic.content.pages import namespaced

_NAMED = "SELECT DISTINCT target FROM links WHERE target >= '[[' AND target < '[\\'"
_BY_ALIAS = (
    "SELECT path_key FROM names JOIN pages USING (path) WHERE key = ? AND ordinal = -1 ORDER BY length(path), path LIMIT 1"
)


def resolve_wiki_links(connection: sqlite3.Connection) -> bool:
    """Set each wikilink's target to the page of its name with the shortest path, or else a page with this title or alias.

    Return whether any target has changed.
    """
    is_changed = False
    pages: dict[str, str] = {}
    for (key,) in sorted(connection.execute("SELECT path_key FROM pages"), key=lambda row: (row[0].count("/"), *row)):
        parts = namespaced(key).split("/")
        for start in range(len(parts)):
            pages.setdefault("/".join(parts[start:]), key)
    for (link,) in connection.execute(_NAMED).fetchall():
        name, _, before = link[2:].partition("|")
        target = pages.get(name) or _by_alias(connection, name) or name
        if target != before:
            _lead_to(connection, link, before, target, f"[[{name}|{target}")
            is_changed = True
    return is_changed


def _by_alias(connection: sqlite3.Connection, name: str) -> str | None:
    found = connection.execute(_BY_ALIAS, (name_key(name),)).fetchone()
    return found[0] if found else None


def _lead_to(connection: sqlite3.Connection, link: str, before: str, target: str, renamed: str) -> None:
    """Replace the target of a link on all pages that contain it."""
    connection.execute(
        "DELETE FROM links WHERE target = ? AND path IN (SELECT path FROM links WHERE target = ?)", (before, link)
    )
    connection.execute("INSERT OR IGNORE INTO links SELECT path, ? FROM links WHERE target = ?", (target, link))
    connection.execute("UPDATE OR REPLACE links SET target = ? WHERE target = ?", (renamed, link))
