"""Commands on a folder without git, as it is on the disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from otterwiki_semantic.cli.common import IndexPlace
from tests.integration.cli.test_main import Answer, run
from tests.support.attachments import pdf, word
from tests.support.live_wiki import make_repository

Command = Callable[..., Answer]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    place = tmp_path / "notes"
    (place / "house").mkdir(parents=True)
    (place / "house" / "heating.md").write_text("# Heating\n\nBleed the radiators when they gurgle.\n")
    (place / "garden.md").write_text("# Garden\n\nSow the beans in May. See [the pond](pond.md).\n")
    return place


@pytest.fixture
def command(notes: Path, tmp_path: Path) -> Command:
    def on_folder(*arguments: str) -> Answer:
        name, *others = arguments
        return run(name, "--folder", notes, *others, XDG_DATA_HOME=str(tmp_path / "home"), SEMANTIC_ANSWERS="extractive")

    return on_folder


def test_each_command_finds_what_is_on_the_disk(command: Command, notes: Path) -> None:
    answer = command("index")
    assert answer.stdout.startswith("ready: 2 pages, 2 chunks, at "), answer.stderr
    (notes / "pond.md").write_text("# Pond\n\nNewts spawn in the shallow water.\n")
    assert command("search", "-n", "1", "where do newts spawn").stdout.startswith("pond:1 ")
    (notes / "garden.md").unlink()
    found = json.loads(command("status", "--json").stdout)
    assert (found["pages"], found["indexed_commit"]) == (2, found["head_commit"])
    (notes / "house" / "heating.md").write_text("# Heating\n\nThe boiler is serviced in September.\n")
    answer = command("ask", "When is the boiler serviced?")
    assert "The boiler is serviced in September. [1]" in answer.stdout, answer.stderr
    assert not list(notes.rglob(".*"))
    assert not list(notes.parent.glob("notes-*"))


def test_a_folder_has_no_map(notes: Path, tmp_path: Path) -> None:
    assert "map" in IndexPlace.of(make_repository(tmp_path / "wiki", {}), None, tmp_path / "of wiki").settings().pages
    assert "map" not in IndexPlace.of(None, notes, tmp_path / "of notes").settings().pages


def test_documents_beside_notes_are_found(command: Command, notes: Path) -> None:
    (notes / "Lease.pdf").write_bytes(pdf(["The landlord is Ann Lee."], ["The notice period is three months."]))
    (notes / "house" / "Rules.docx").write_bytes(word("# Quiet hours", "No music after ten."))
    (notes / "house.md").write_text("# House\n\nSee [[Lease.pdf]].\n")
    (hit,) = json.loads(command("search", "-n", "1", "--json", "how long is the notice period").stdout)["results"]
    assert (hit["path"], hit["page_number"], "attached_to" in hit) == ("Lease.pdf", 2, False)
    (hit,) = json.loads(command("search", "-n", "1", "--json", "music at night").stdout)["results"]
    assert (hit["path"], hit["attached_to"]) == ("house/Rules.docx", "house")
    (finding,) = json.loads(command("health", "--kind", "broken_link", "--json").stdout)["findings"]
    assert finding["missing"] == "pond", "the link to the PDF is not broken"


def test_health_evaluation_and_chunks_take_a_folder(command: Command, notes: Path, tmp_path: Path) -> None:
    assert command("health", "--kind", "broken_link").stdout.splitlines()[0].endswith("no page 'pond'")
    (notes / "pond.md").write_text("# Pond\n\nNewts spawn in the shallow water.\n")
    assert "No findings" in command("health", "--kind", "broken_link").stderr
    queries = tmp_path / "queries.json"
    assert run("eval", "make", "--folder", notes, "--output", queries, XDG_DATA_HOME=str(tmp_path / "home")).returncode == 0
    (notes / "frogs.md").write_text("# Frogs\n\nFrogs croak at night.\n")
    evaluated = run("eval", str(queries), "--folder", notes, "--json", XDG_DATA_HOME=str(tmp_path / "home"))
    assert json.loads(evaluated.stdout)["runs"][0]["queries"][0]["relevant"], evaluated.stderr
    assert json.loads(command("chunks", "frogs", "--json").stdout)["totals"]["pages"] == 1
    assert "4 pages at" in command("doctor").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("search", "--repository", ".", "x"), 2, "--repository and --folder cannot be combined"),
        (("index", "--folder", "/nonexistent"), 1, "the folder /nonexistent does not exist, or cannot be read"),
        (("index", "--data-dir", "{notes}/index"), 1, "is inside the folder"),
        (("mcp", "--allow-write"), 2, "--allow-write requires a running wiki"),
        (("mcp", "--url", "http://localhost"), 2, "--url cannot be combined with --repository or --folder"),
    ],
)
def test_usage_errors(command: Command, notes: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    answer = command(*(each.format(notes=notes) for each in arguments))
    assert answer.returncode == code
    assert message in answer.stderr


def test_a_folder_without_markdown_is_an_error(tmp_path: Path) -> None:
    answer = run("index", "--folder", tmp_path, "--data-dir", tmp_path.with_name(f"{tmp_path.name}-index"))
    assert (answer.returncode, "has no Markdown files" in answer.stderr) == (1, True)
