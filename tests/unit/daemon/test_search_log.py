"""What the search log counts, keeps and forgets."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from otterwiki_semantic.core.records import Answer, Freshness, Mode, TotalHits
from otterwiki_semantic.daemon.reports import search_log
from otterwiki_semantic.daemon.reports.search_log import NAME, SearchLog, remove_searches

Open = Callable[[], SearchLog]
HOUR = 3600.0
NOW = 1_800_000_000.0 // HOUR * HOUR + 1800
"""In the middle of an hour, after today."""


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens logs of one data directory; all are closed at the end."""
    made: list[SearchLog] = []

    def opened() -> SearchLog:
        made.append(SearchLog(tmp_path))
        return made[-1]

    yield opened
    for log in made:
        log.close()


def answer(query: str, *, confident: bool = True, commit: str | None = "c1") -> Answer:
    index = Freshness(commit, "c1", 0)
    return Answer(query=query, total=0, total_hits=TotalHits(0, "eq"), confident=confident, index=index, results=())


def note(log: SearchLog, query: str = "x", *, milliseconds: float = 1.0, at: float = NOW, confident: bool = True) -> None:
    log.record([answer(query, confident=confident)], Mode.HYBRID, at, milliseconds / 1000)


def count(log: SearchLog) -> int:
    return sum(hour.count for hour in log.hours(NOW))


def rows_on_disk(place: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(place / NAME)) as connection:
        return connection.execute("SELECT mode, is_answered, query FROM searches ORDER BY id").fetchall()


def bytes_on_disk(place: Path) -> bytes:
    return b"".join(path.read_bytes() for path in place.glob(f"{NAME}*"))


def test_half_and_95_percent_of_an_hours_searches_took_no_longer(opened: Open) -> None:
    log = opened()
    for milliseconds in (*range(100, 0, -1),):
        note(log, milliseconds=float(milliseconds), confident=milliseconds > 7)
    (hour,) = log.hours(NOW)
    assert (hour.count, hour.unanswered, hour.p50_ms, hour.p95_ms) == (100, 7, 50.0, 95.0)
    assert hour.hour == "2027-01-15T08:00:00+00:00"


def test_hours_stand_in_order_and_those_without_searches_are_left_out(opened: Open) -> None:
    log = opened()
    for ago, milliseconds in ((0.0, 3.0), (5 * HOUR, 1.0), (5 * HOUR, 2.0), (8 * 24 * HOUR, 9.0)):
        note(log, at=NOW - ago, milliseconds=milliseconds)
    assert [(hour.count, hour.p50_ms, hour.p95_ms) for hour in log.hours(NOW)] == [(2, 1.0, 2.0), (1, 3.0, 3.0)]


def test_the_hours_together_have_percentiles_of_their_own(opened: Open) -> None:
    log = opened()
    assert log.total(NOW) is None
    for ago, milliseconds in ((0.0, 3.0), (0.0, 4.0), (5 * HOUR, 9.0)):
        note(log, at=NOW - ago, milliseconds=milliseconds)
    total = log.total(NOW)
    assert total
    assert (total.count, total.p50_ms, total.p95_ms) == (3, 4.0, 9.0)


def test_questions_of_one_request_share_its_time(opened: Open) -> None:
    log = opened()
    log.record([answer("one"), answer("two", confident=False)], Mode.KEYWORD, NOW, 0.02)
    (hour,) = log.hours(NOW)
    assert (hour.count, hour.unanswered, hour.p50_ms, hour.p95_ms) == (2, 1, 10.0, 10.0)


def test_questions_that_differ_in_case_space_and_quotes_alone_are_one(opened: Open) -> None:
    log = opened()
    for ago, query in ((30, '"Quantum  Foam"'), (20, "quantum foam"), (10, " QUANTUM\tfoam "), (15, "Straße"), (5, "strasse")):
        note(log, query, at=NOW - ago, confident=False)
    note(log, "once", at=NOW, confident=False)
    note(log, "quantum foam", at=NOW - 7, confident=True)
    found = log.unanswered(NOW)
    assert [(each.query, each.times) for each in found] == [(" QUANTUM\tfoam ", 3), ("strasse", 2), ("once", 1)]
    assert found[2].last == "2027-01-15T08:30:00+00:00"


def test_the_questions_asked_most_often_are_shown(opened: Open) -> None:
    log = opened()
    for number in range(60):
        for _ in range(1 + number // 20):
            note(log, f"question {number}", at=NOW - 1000 + number, confident=False)
    found = log.unanswered(NOW)
    assert [each.times for each in found] == [3] * 20 + [2] * 20 + [1] * 10
    assert found[0].query == "question 59"
    assert found[-1].query == "question 10"


def test_the_text_of_an_answered_question_is_not_kept(opened: Open, tmp_path: Path) -> None:
    log = opened()
    note(log, "my secret illness", confident=True)
    note(log, "lost without trace", confident=False)
    log.close()
    assert rows_on_disk(tmp_path) == [("hybrid", 1, None), ("hybrid", 0, "lost without trace")]
    assert b"illness" not in bytes_on_disk(tmp_path)


@pytest.mark.parametrize(
    ("query", "kept"), [("w" * 900, "w" * 200), ("half \ud83d one", "half ? one"), ("nul \0 'x'", "nul \0 'x'")]
)
def test_any_text_can_be_kept(opened: Open, query: str, kept: str) -> None:
    log = opened()
    note(log, query, confident=False)
    assert [each.query for each in log.unanswered(NOW)] == [kept]


def test_what_is_asked_before_the_first_build_or_without_a_word_does_not_count(opened: Open) -> None:
    log = opened()
    for typed in ('"', '""', "“ ”?"):
        note(log, typed, confident=False)
    log.record([answer("too early", confident=False, commit=None)], Mode.HYBRID, NOW, 0.01)
    note(log, "later")
    assert count(log) == 1
    assert log.unanswered(NOW) == ()


def test_notes_reach_the_disk_though_nobody_looks(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_log, "_BATCH_SECONDS", 0.01)
    writes, read = SimpleQueue[None](), SearchLog._read

    def read_and_report(log: SearchLog, *arguments: Any) -> Any:
        result = read(log, *arguments)
        writes.put(None)
        return result

    monkeypatch.setattr(SearchLog, "_read", read_and_report)
    log = opened()
    writes.get(timeout=60)
    for number in (1, 2):
        note(log)
        while len(rows_on_disk(tmp_path)) < number:
            writes.get(timeout=60)


def test_notes_outlive_the_process(opened: Open) -> None:
    first = opened()
    note(first, "gone", confident=False)
    first.close()
    second = opened()
    note(second, "gone", confident=False)
    assert [each.times for each in second.unanswered(NOW)] == [2]


def test_searches_are_forgotten_after_90_days(opened: Open, tmp_path: Path) -> None:
    log = opened()
    note(log, "old", at=NOW - 91 * 86_400, confident=False)
    assert log.unanswered(NOW) == ()
    note(log, "new", at=NOW - 89 * 86_400, confident=False)
    note(log, "now", at=NOW, confident=False)
    assert {each.query for each in log.unanswered(NOW)} == {"new", "now"}
    log.close()
    assert [row[2] for row in rows_on_disk(tmp_path)] == ["new", "now"]


def test_the_oldest_of_too_many_searches_are_forgotten(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_log, "MAX_ROWS", 50)
    log = opened()
    for number in range(80):
        note(log, str(number), at=NOW + number / 10 - 60, confident=False)
        if number % 7 == 0:
            log.hours(NOW)
    assert count(log) == 50
    assert {int(each.query) for each in log.unanswered(NOW)} == set(range(30, 80))


def test_searches_of_many_threads_are_all_noted(opened: Open) -> None:
    log = opened()

    def search() -> None:
        for _ in range(500):
            note(log)

    threads = [threading.Thread(target=search) for _ in range(8)]
    for thread in threads:
        thread.start()
    seen = [count(log) for _ in range(20)]
    for thread in threads:
        thread.join()
    assert seen == sorted(seen)
    assert count(log) == 4000


@pytest.mark.parametrize("content", [b"this is no database at all" * 100, b""])
def test_a_file_that_is_no_database_is_replaced(opened: Open, tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    log = opened()
    note(log)
    assert count(log) == 1
    assert log.error is None


def test_a_database_with_other_tables_is_replaced(opened: Open, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / NAME)) as connection:
        connection.execute("CREATE TABLE searches (something)")
    log = opened()
    note(log)
    assert count(log) == 1


def test_a_file_damaged_within_is_replaced(opened: Open, tmp_path: Path) -> None:
    log = opened()
    for number in range(2000):
        note(log, f"{number}" * 20, confident=False)
    log.close()
    content = bytearray((tmp_path / NAME).read_bytes())
    content[8192:] = b"\xff" * len(content[8192:])
    (tmp_path / NAME).write_bytes(content)
    again = opened()
    again.unanswered(NOW)
    note(again)
    assert count(again) == 1
    assert again.error is None


def test_a_file_that_was_deleted_is_made_again(opened: Open, tmp_path: Path) -> None:
    log = opened()
    note(log)
    assert count(log) == 1
    remove_searches(tmp_path)
    note(log)
    assert count(log) == 1
    assert (tmp_path / NAME).exists()


def test_notes_wait_until_the_file_can_be_written(opened: Open, tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    log = opened()
    note(log, "first")
    assert log.hours(NOW) == ()
    assert log.unanswered(NOW) == ()
    assert log.error is not None
    (tmp_path / NAME).rmdir()
    note(log, "second")
    assert count(log) == 2
    assert log.error is None


def test_only_its_user_can_read_the_searches(opened: Open, tmp_path: Path) -> None:
    log = opened()
    note(log, confident=False)
    assert count(log) == 1
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert set(modes) >= {NAME, f"{NAME}-wal"}
    assert set(modes.values()) == {0o600}


def test_nothing_is_left_of_removed_searches(opened: Open, tmp_path: Path) -> None:
    log = opened()
    note(log, confident=False)
    assert count(log) == 1
    remove_searches(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_closing_writes_what_waits_at_once(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_log, "_BATCH_SECONDS", 3600)
    monkeypatch.setattr(search_log, "_CLOSE_SECONDS", 60)
    log = opened()
    note(log)
    log.close()
    assert len(rows_on_disk(tmp_path)) == 1
