"""A ChromaDB server that several wikis share, and that does not let everybody in."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from otterwiki_semantic.core.errors import VectorStoreError, VectorStoreRefusedError, VectorStoreUnreachableError
from otterwiki_semantic.core.hints import problem
from otterwiki_semantic.storage.chroma.connection import ChromaServer
from otterwiki_semantic.storage.chroma.ownership import CollectionOwnership
from otterwiki_semantic.storage.chroma.server import ChromaServerStore
from tests.support.ports import free_port
from tests.support.proxies import chroma_proxy
from tests.support.running_chroma import GuardedChroma, RunningChroma, make_certificate
from tests.support.vectors import stored, unit_rows

TOKEN = "a-token/that=nobody+guesses"
Open = Callable[..., ChromaServerStore]


@pytest.fixture
def guarded(shared_chroma: RunningChroma, tmp_path: Path) -> Iterator[GuardedChroma]:
    with closing(GuardedChroma(shared_chroma, tmp_path, TOKEN)) as guarded:
        yield guarded


@pytest.fixture
def database() -> str:
    """The name of a database of the test's own, which nobody has made yet."""
    return f"database-{uuid.uuid4().hex}"


@pytest.fixture
def server(guarded: GuardedChroma, database: str) -> ChromaServer:
    """The guarded server, with everything that it takes to be let in."""
    return ChromaServer(guarded.url, TOKEN, "acme", database, guarded.certificate)


@pytest.fixture
def opened(shared_chroma: RunningChroma, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens a collection of the data directory that is given, as a process of its own does; it is looked at at once."""
    monkeypatch.setattr("otterwiki_semantic.storage.chroma.server._TRUSTED_SECONDS", 0.0)
    server = ChromaServer(shared_chroma.url, tenant="acme", database=database)
    made: list[ChromaServerStore] = []

    def opened(data_dir: Path, name: str = "otterwiki-test") -> ChromaServerStore:
        data_dir.mkdir(exist_ok=True)
        made.append(ChromaServerStore(server, name, CollectionOwnership(data_dir / "chroma-server.json", server.place)))
        return made[-1]

    yield opened
    for each in made:
        each.close()


def refusal(server: ChromaServer, notes: Path) -> str:
    """Return why the server cannot be used, shown to administrators with a hint, and without the token."""
    vectors = ChromaServerStore(server, "otterwiki-test", CollectionOwnership(notes / "notes.json", server.place))
    with pytest.raises(VectorStoreRefusedError) as failure:
        vectors.count()
    vectors.destroy()
    assert server.url in str(failure.value) or "SEMANTIC_CHROMA_CA" in str(failure.value)
    assert "SEMANTIC_CHROMA" in problem(failure.value).hint
    assert TOKEN not in repr(failure.value) + repr(server) + repr(vectors)
    return str(failure.value)


# Being let in


def test_it_is_reached_through_the_documented_proxy(shared_chroma: RunningChroma, tmp_path: Path, database: str) -> None:
    certificate, key, port = tmp_path / "certificate.pem", tmp_path / "key.pem", free_port()
    make_certificate(certificate, key)
    with chroma_proxy(port, shared_chroma.port, TOKEN, certificate, key, tmp_path / "nginx"):
        server = ChromaServer(f"https://127.0.0.1:{port}", TOKEN, "acme", database, certificate)
        vectors = ChromaServerStore(server, "otterwiki-test", CollectionOwnership(tmp_path / "notes.json", server.place))
        vectors.upsert(stored(unit_rows(400)))
        assert vectors.count() == 400, "more than a megabyte, which is all that nginx takes unless it is told"
        vectors.close()
        assert "correct SEMANTIC_CHROMA_TOKEN" in refusal(replace(server, token="another"), tmp_path)


def test_who_has_no_token_or_a_wrong_one_is_told(server: ChromaServer, tmp_path: Path) -> None:
    assert "wants a token: set SEMANTIC_CHROMA_TOKEN" in refusal(replace(server, token=None), tmp_path)
    assert "does not take the token: correct SEMANTIC_CHROMA_TOKEN" in refusal(replace(server, token="another"), tmp_path)


def test_a_certificate_that_is_not_trusted_is_told(server: ChromaServer, tmp_path: Path) -> None:
    why = refusal(replace(server, ca=None), tmp_path)
    assert "certificate is not trusted" in why
    assert "SEMANTIC_CHROMA_CA" in why
    assert "certificate is not trusted" in refusal(replace(server, url=server.url.replace("127.0.0.1", "localhost")), tmp_path)


def test_a_server_that_does_not_speak_tls_is_told(shared_chroma: RunningChroma, tmp_path: Path) -> None:
    assert "begins as it has to" in refusal(ChromaServer(shared_chroma.url.replace("http:", "https:")), tmp_path)


def test_a_database_that_may_not_be_made_is_named(guarded: GuardedChroma, server: ChromaServer, tmp_path: Path) -> None:
    databases = "POST /api/v2/tenants/acme/databases"
    guarded.refusals[f"{databases}/"] = 400, '{"error": "InvalidArgumentError", "message": "no such database"}'
    guarded.refusals[databases] = 501, '{"error": "InternalError", "message": "not by you"}'
    why = refusal(server, tmp_path)
    for part in (f"has no database {server.database} of tenant acme", "not by you", "SEMANTIC_CHROMA_DATABASE"):
        assert part in why


def test_a_database_that_one_may_not_use_is_named(guarded: GuardedChroma, server: ChromaServer, tmp_path: Path) -> None:
    guarded.refusals["GET"] = guarded.refusals["POST"] = 403, '{"error": "AuthError", "message": "Forbidden"}'
    assert f"forbids the use of database {server.database} of tenant acme" in refusal(server, tmp_path)


def test_a_token_that_the_server_repeats_is_not_passed_on(guarded: GuardedChroma, server: ChromaServer, tmp_path: Path) -> None:
    guarded.refusals["POST"] = 500, json.dumps({"error": "InternalError", "message": f"odd: Bearer {TOKEN}"})
    vectors = ChromaServerStore(server, "otterwiki-test", CollectionOwnership(tmp_path / "notes.json", server.place))
    with pytest.raises(VectorStoreError, match="odd: Bearer …"):
        vectors.count()
    vectors.close()


def test_a_server_that_is_asked_too_often_is_left_alone(guarded: GuardedChroma, server: ChromaServer, tmp_path: Path) -> None:
    guarded.refusals["POST"] = 429, '{"error": "RateLimitError", "message": "slow down"}'
    vectors = ChromaServerStore(server, "otterwiki-test", CollectionOwnership(tmp_path / "notes.json", server.place))
    with pytest.raises(VectorStoreUnreachableError, match="now: slow down"):
        vectors.count()
    vectors.close()


def test_a_server_that_answers_in_small_portions_is_asked_for_them(server: ChromaServer, tmp_path: Path) -> None:
    vectors = ChromaServerStore(server, "otterwiki-test", CollectionOwnership(tmp_path / "notes.json", server.place))
    vectors.upsert(stored(unit_rows(700)))
    assert vectors.max_results > 700
    assert vectors.ids() == {f"v{number}" for number in range(700)}
    assert vectors.max_results == GuardedChroma.PORTION
    assert len(vectors.query(unit_rows(1)[0], 300)) == 300
    vectors.close()


def test_a_deleted_database_is_made_again(shared_chroma: RunningChroma, opened: Open, database: str, tmp_path: Path) -> None:
    vectors = opened(tmp_path)
    vectors.upsert(stored(unit_rows(2)))
    shared_chroma.ask("DELETE", f"/tenants/acme/databases/{database}")
    with pytest.raises(VectorStoreError, match="has lost the collection"):
        vectors.query(unit_rows(1)[0], 1)
    vectors = opened(tmp_path)
    assert vectors.count() == 0
    vectors.upsert(stored(unit_rows(2)))
    assert sorted(vectors.query(unit_rows(2)[1], 2)) == ["v0", "v1"]


# Whose a collection is


def copy(data_dir: Path) -> Path:
    """Return a copy of a data directory, as a backup that is restored beside it is one."""
    return Path(shutil.copytree(data_dir, data_dir.with_name(f"copy of {data_dir.name}"), dirs_exist_ok=True))


def test_a_copy_that_goes_on_with_a_collection_has_it_for_itself(opened: Open, tmp_path: Path) -> None:
    original = opened(tmp_path / "wiki")
    original.upsert(stored(unit_rows(3)))
    copied = opened(copy(tmp_path / "wiki"))
    assert copied.ids() == {"v0", "v1", "v2"}
    for call in (original.count, lambda: original.delete(["v0"]), lambda: original.query(unit_rows(1)[0], 1)):
        with pytest.raises(VectorStoreError, match="is used by another wiki, with a copy of this data directory"):
            call()
    original.destroy()
    assert copied.ids() == {"v0", "v1", "v2"}


def test_a_copy_whose_original_has_gone_on_begins_a_collection_of_its_own(opened: Open, tmp_path: Path) -> None:
    opened(tmp_path / "wiki").upsert(stored(unit_rows(3)))
    copied_dir = copy(tmp_path / "wiki")
    original = opened(tmp_path / "wiki")
    assert original.count() == 3
    copied = opened(copied_dir)
    with pytest.raises(VectorStoreError, match="is used by another wiki"):
        copied.count()
    copied.destroy()
    assert original.count() == 3
    own = opened(copied_dir, "otterwiki-own")
    own.upsert(stored(unit_rows(1)))
    own.destroy()
    assert original.count() == 3


def test_the_same_wiki_goes_on_with_its_collection(opened: Open, tmp_path: Path) -> None:
    for times in range(3):
        vectors = opened(tmp_path / "wiki")
        assert vectors.count() == times
        vectors.upsert(stored(unit_rows(times + 1)))
        vectors.close()


def test_a_wiki_that_was_moved_goes_on_with_its_collection(opened: Open, tmp_path: Path) -> None:
    opened(tmp_path / "wiki").upsert(stored(unit_rows(3)))
    (tmp_path / "wiki").rename(tmp_path / "elsewhere")
    assert opened(tmp_path / "elsewhere").count() == 3


def test_a_collection_of_the_same_name_that_is_not_ours_is_left_alone(
    shared_chroma: RunningChroma, opened: Open, database: str, tmp_path: Path
) -> None:
    theirs = opened(tmp_path / "theirs")
    theirs.upsert(stored(unit_rows(3)))
    ours = opened(tmp_path / "ours")
    with pytest.raises(VectorStoreError, match="is used by another wiki"):
        ours.upsert(stored(unit_rows(1)))
    ours.destroy()
    assert shared_chroma.collections(f"acme/{database}") == ["otterwiki-test"]
    assert theirs.count() == 3


def test_what_a_crash_left_is_removed_by_its_own_wiki_only(
    shared_chroma: RunningChroma, opened: Open, database: str, tmp_path: Path
) -> None:
    for wiki in ("one", "two"):
        opened(tmp_path / wiki, f"otterwiki-{wiki}").upsert(stored(unit_rows(1)))
        opened(tmp_path / wiki, f"otterwiki-{wiki}-left").upsert(stored(unit_rows(1)))
    copied = opened(copy(tmp_path / "one"), "otterwiki-copied")
    assert copied.count() == 0
    assert copied.remove_strays() == []
    again = opened(tmp_path / "one", "otterwiki-one")
    assert again.count() == 1
    assert again.remove_strays() == ["otterwiki-one-left"]
    assert again.remove_strays() == []
    left = ["otterwiki-copied", "otterwiki-one", "otterwiki-two", "otterwiki-two-left"]
    assert shared_chroma.collections(f"acme/{database}") == left


def test_a_collection_in_use_is_no_stray(shared_chroma: RunningChroma, database: str, tmp_path: Path) -> None:
    server = ChromaServer(shared_chroma.url, tenant="acme", database=database)
    ownership = CollectionOwnership(tmp_path / "notes.json", server.place)
    serving, built = (ChromaServerStore(server, f"otterwiki-{name}", ownership) for name in ("serving", "built"))
    assert serving.count() == built.count() == 0
    assert serving.remove_strays() == []
    built.close()
    assert serving.remove_strays() == ["otterwiki-built"]
    serving.close()


def test_unreadable_notes_lose_only_the_collection(opened: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for garbage in ("{", "[]", '{"place": {"name": 1}}', '{"place": {"name": {"inode": 1}}}', '{"place": 1}'):
        (tmp_path / "chroma-server.json").write_text(garbage)
        caplog.clear()
        vectors = opened(tmp_path, f"otterwiki-{uuid.uuid4().hex}")
        assert "chroma-server.json cannot be read" in caplog.text
        assert vectors.count() == 0
        vectors.destroy()


def test_notes_that_cannot_be_written_keep_the_server_from_being_used(opened: Open, tmp_path: Path) -> None:
    vectors = opened(tmp_path)
    (tmp_path / "chroma-server.new").mkdir()
    with pytest.raises(VectorStoreRefusedError, match=r"chroma-server\.json cannot be written"):
        vectors.count()
    (tmp_path / "chroma-server.new").rmdir()
    assert vectors.count() == 0


def test_a_process_that_ends_between_its_mark_and_its_note_is_known_to_the_next(tmp_path: Path) -> None:
    first = CollectionOwnership(tmp_path / "notes.json", "there")
    marked = first.claim("otterwiki-test")
    first.confirm("otterwiki-test")
    second = CollectionOwnership(tmp_path / "notes.json", "there")
    half = second.claim("otterwiki-test")
    third = CollectionOwnership(tmp_path / "notes.json", "there")
    assert third.may_claim("otterwiki-test", marked)
    assert third.may_claim("otterwiki-test", half)
    third.claim("otterwiki-test")
    third.confirm("otterwiki-test")
    assert not third.may_claim("otterwiki-test", marked)
    assert CollectionOwnership(tmp_path / "notes.json", "by another address").may_claim(
        "otterwiki-test", third.claim("otterwiki-test")
    )
