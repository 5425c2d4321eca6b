"""Garbage collection of vectors: those that no chunk refers to any more are deleted.

Only suspects are looked at: vectors that a chunk referred to until it was deleted, and new ones until a chunk refers to them.
"""

from __future__ import annotations

import sqlite3


def suspect_vector(connection: sqlite3.Connection, vector: str) -> None:
    """Record a vector that may be garbage."""
    connection.execute("INSERT OR IGNORE INTO suspects VALUES (?)", (vector,))


def suspect_page(connection: sqlite3.Connection, path: str) -> None:
    """Record that the vectors of a page's chunks may be garbage: the page is about to be deleted."""
    vectors = "SELECT vector FROM chunks JOIN vectors ON vectors.id = vector WHERE path = ?"
    connection.execute(f"INSERT OR IGNORE INTO suspects {vectors}", (path,))


def collect_garbage(connection: sqlite3.Connection) -> None:
    """Delete the suspects that no chunk refers to, and note them for ChromaDB."""
    unused = "SELECT vector FROM suspects WHERE vector NOT IN (SELECT vector FROM chunks)"
    connection.execute(f"INSERT OR IGNORE INTO dropped {unused}")
    connection.execute(f"INSERT INTO free_places SELECT place FROM vectors WHERE id IN ({unused})")
    connection.execute(f"DELETE FROM vectors WHERE id IN ({unused})")
    for table in ("unstored", "stale"):
        connection.execute(f"DELETE FROM {table} WHERE vector IN ({unused})")
    connection.execute("DELETE FROM suspects")
