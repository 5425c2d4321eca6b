"""``otterwiki-semantic chunks`` shows what the index would have, without one."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.core.chunk_profiles import Profile
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.integration.cli.test_main import run
from tests.support.chunks import read_page
from tests.support.live_wiki import commit, git, make_repository

_BEARINGS = " ".join(f"Bearing {number} of this pump is greased in May." for number in range(60))
LONG_PAGE = f"# Pumps\n\n## Pump 1\n\n{_BEARINGS}\n\n## Pump 2\n\n{_BEARINGS}\n"


@pytest.fixture
def repository(tmp_path: Path, handbook: dict[str, str | bytes]) -> Path:
    return make_repository(tmp_path / "repository", handbook | {"House/Pumps.md": LONG_PAGE})


def chunks(repository: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    answer = run("chunks", "--repository", repository, "--json", *arguments, **environment)
    assert answer.returncode == 0, answer.stderr
    report: dict[str, Any] = json.loads(answer.stdout)
    return report


def test_a_page_is_shown_as_it_is_indexed(repository: Path, model: BundledModel) -> None:
    report = chunks(repository, "house/pumps.md")
    page = read_page("House/Pumps", "", LONG_PAGE.encode(), model, Profile())
    (shown,) = report["pages"]
    assert (shown["path"], shown["title"], shown["problem"]) == ("House/Pumps", "Pumps", None)
    assert [(row["section_path"], row["start_line"], row["end_line"]) for row in shown["chunks"]] == [
        ([*chunk.section_path], chunk.start_line, chunk.end_line) for chunk in page.chunks
    ]
    bodies = [chunk.text[chunk.prefix_length :] for chunk in page.chunks]
    assert [row["characters"] for row in shown["chunks"]] == list(map(len, bodies))
    assert [row["tokens"] for row in shown["chunks"]] == model.input_tokens([chunk.text for chunk in page.chunks])
    assert not (repository.parent / "repository-semantic").exists()


def test_a_page_is_shown_to_people(repository: Path) -> None:
    answer = run("chunks", "--repository", repository, "House/Pumps", "--price", "0.5")
    assert answer.returncode == 0, answer.stderr
    head, first, *_ = answer.stdout.splitlines()
    assert head.split() == ["characters", "words", "tokens", "passage"]
    assert first.split()[3:] == ["House/Pumps:1-5", "Pumps", ">", "Pump", "1"]
    assert "profile minilm: target 150, overlap 35, min 50 words" in answer.stdout
    assert "tokens, $0.00" in answer.stdout
    assert answer.stdout.splitlines()[-1].endswith("at $0.5 per million")
    commit(repository, {"long.md": "# Long\n\n" + " " * 2_000_000})
    assert run("chunks", "--repository", repository, "long").stderr.startswith("long: only its first ")


def test_the_totals_are_those_of_the_index(repository: Path) -> None:
    totals = chunks(repository, "--all", "--price", "2")["totals"]
    status = json.loads(run("index", "--repository", repository, "--json").stdout)
    assert (totals["pages"], totals["chunks"]) == (status["pages"], status["chunks"])
    assert totals["tokens_to_embed"] > totals["tokens"], "heading paths are embedded, too"
    assert totals["usd"] == pytest.approx(totals["tokens_to_embed"] * 2e-6)
    assert totals["tokens_are_estimated"] is False
    shown = run("chunks", "--repository", repository, "--all").stdout
    assert shown.startswith(f"{totals['pages']} pages, {totals['chunks']} passages, {totals['tokens']:,} tokens\n")


def test_the_sizes_are_those_of_the_setting(repository: Path) -> None:
    small = chunks(repository, "House/Pumps", SEMANTIC_CHUNKS="sections:target=300,overlap=50,max=400")
    assert small["profile"] == {
        "name": "sections", "unit": "characters", "target": 300, "overlap": 50, "min": 100, "max": 400, "page": 0
    }  # fmt: skip
    assert small["sizes"]["characters"]["max"] <= 400
    assert small["totals"]["chunks"] > 2 * chunks(repository, "House/Pumps")["totals"]["chunks"]
    answer = run("chunks", "--repository", repository, "--all", SEMANTIC_CHUNKS="sections:overlap=1000")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "SEMANTIC_CHUNKS is 'sections:overlap=1000': overlap is 1000 with a target of 1000; allowed: less" in answer.stderr


def test_what_is_not_embedded_costs_nothing(repository: Path) -> None:
    before = chunks(repository, "--all")["totals"]
    commit(repository, {"words.md": "---\nsearch: words\n---\n# Part 17-B\n", "no.md": "---\nsearch: false\n---\n# Diary\n"})
    after = chunks(repository, "--all", SEMANTIC_EXCLUDE="House/**")["totals"]
    assert (after["pages"], after["excluded_pages"]) == (before["pages"], 2)
    after = chunks(repository, "--all")["totals"]
    assert (after["pages"], after["chunks"]) == (before["pages"] + 1, before["chunks"] + 1)
    assert after["tokens_to_embed"] == before["tokens_to_embed"]
    commit(repository, {"copy.md": "---\ntitle: Pumps\n---\n" + LONG_PAGE})
    assert chunks(repository, "--all")["totals"]["tokens_to_embed"] == before["tokens_to_embed"], "equal texts share a vector"


def test_no_server_is_asked(repository: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        given = {"SEMANTIC_MODEL": "ollama:nomic-embed-text", "SEMANTIC_MODEL_URL": url}
        answer = run("chunks", "--repository", repository, "--all", **given)
        with pytest.raises(TimeoutError):
            server.accept()
    assert answer.returncode == 0
    assert "(an estimate: the tokenizer is on the server)" in answer.stdout
    assert "512 tokens are assumed. Set SEMANTIC_MODEL_WINDOW" in answer.stderr
    answer = run("chunks", "--repository", repository, "--all", **given, SEMANTIC_MODEL_WINDOW="8192", SEMANTIC_CHUNKS="auto")
    assert "(window 8,192 tokens), profile long: target 500" in answer.stdout
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        ((), 2, "name a PAGE, or use --all"),
        (("garden", "--all"), 2, "PAGE and --all cannot be combined"),
        (("--all", "--price", "-1"), 2, "--price"),
        (("gardn",), 1, "the wiki has no page 'gardn'; perhaps: garden"),
    ],
)
def test_a_mistake_is_explained(repository: Path, arguments: tuple[str, ...], code: int, part: str) -> None:
    answer = run("chunks", "--repository", repository, *arguments)
    assert (answer.returncode, answer.stdout) == (code, "")
    assert part in answer.stderr


def test_an_excluded_page_says_why_and_a_repository_without_a_commit_what_to_do(repository: Path) -> None:
    commit(repository, {"no.md": "---\nsearch: false\n---\n# Diary\n"})
    assert "excluded from search by its front matter" in run("chunks", "--repository", repository, "no").stderr
    answer = run("chunks", "--repository", repository, "house/pumps", SEMANTIC_EXCLUDE="House/Pumps.md")
    assert (answer.returncode, "excluded from search by SEMANTIC_EXCLUDE" in answer.stderr) == (1, True)
    git(repository, "checkout", "-q", "--orphan", "other")
    answer = run("chunks", "--repository", repository, "--all")
    assert (answer.returncode, "HEAD has no commit yet" in answer.stderr) == (1, True)
