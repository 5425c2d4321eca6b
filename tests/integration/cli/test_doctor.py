"""What ``otterwiki-semantic doctor`` finds, each trouble made for real."""

from __future__ import annotations

import configparser
import fcntl
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from otterwiki_semantic import __version__
from otterwiki_semantic.cli.doctor.command import run_checks
from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, Level, make_context
from otterwiki_semantic.cli.doctor.environment import check_installation, check_packages, check_settings
from otterwiki_semantic.cli.doctor.files import (
    available_memory,
    check_data_directory,
    check_repository,
    check_resources,
    file_system,
)
from otterwiki_semantic.cli.doctor.index import check_index, status_findings
from otterwiki_semantic.cli.doctor.services import check_model, check_vector_store, check_wiki
from otterwiki_semantic.core.installation import pip_install
from otterwiki_semantic.core.records import Problem, RebuildState, RebuildStatus
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.daemon.protocol import DaemonProbe, code_version
from otterwiki_semantic.embedding.factory import open_embedder
from otterwiki_semantic.embedding.local.bundled import BUNDLED_MODEL, BundledModel
from tests.support.fork_server import python
from tests.support.handbook import HANDBOOK
from tests.support.live_wiki import KEY, LiveWiki, commit, eventually, is_settled, make_repository
from tests.support.model_servers import ModelServer, Reply, serving
from tests.support.packages import fake_package
from tests.support.paths import ROOT
from tests.support.ports import free_port
from tests.support.running_chroma import GuardedChroma, RunningChroma

PATH = {"PATH": os.environ["PATH"]}
SECRET = "a-secret-of-the-wiki"
_BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in %r:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
from otterwiki_semantic.cli import main
main(prog_name="otterwiki-semantic")
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")


def doctor(*arguments: str | Path, without: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    interpreter = sys.executable if without else python()
    command = [interpreter, "-P", "-c", _BLOCKED % (without,), "doctor", *map(str, arguments)]
    inherited = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), **PATH}
    return subprocess.run(command, env=inherited | environment, capture_output=True, text=True, check=False, timeout=300)


def repository_findings(repository: Path, config: dict[str, Any] | None = None, **environment: str) -> list[Finding]:
    return list(check_repository(make_context({**PATH, **environment}, config or {}, repository=repository)))


def of_level(found: list[Finding], level: Level) -> list[tuple[str, str]]:
    return [(each.what, each.detail) for each in found if each.level is level]


def the_problem(found: list[Finding]) -> Finding:
    (problem,) = (each for each in found if each.level is Level.PROBLEM)
    assert problem.hint
    return problem


def files_of(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a repository and its index, which no process owns; tests copy it."""
    place = tmp_path_factory.mktemp("built")
    index = IndexEngine(Settings(make_repository(place / "repository", HANDBOOK), place / "index", pages=()))
    index.start()
    eventually(lambda: is_settled(index.status()) and index.status().index.commit == index.status().index.head)
    index.close(60)  # on a busy machine, a step that goes on would leave a write-ahead log
    (place / "index").chmod(0o700)
    return place


@pytest.fixture
def resting(built: Path, tmp_path: Path) -> DoctorContext:
    shutil.copytree(built, tmp_path / "copy", symlinks=True)
    return make_context(PATH, {}, repository=tmp_path / "copy" / "repository", data_dir=tmp_path / "copy" / "index")


def settings_of(case: DoctorContext) -> Settings:
    assert case.settings is not None
    return case.settings


def catalog_of(case: DoctorContext) -> Path:
    (path,) = settings_of(case).data_dir.glob("generations/*/catalog.sqlite3")
    return path


@contextmanager
def answers(status: int, body: Any = None, **headers: str) -> Iterator[ModelServer]:
    """Serve one answer to every request."""

    class Constant(ModelServer):
        def answer(self, *_: Any, **__: Any) -> Reply:
            if isinstance(body, str):
                return Reply(status, body, headers)
            return Reply(status, json.dumps(body), {"Content-Type": "application/json", **headers})

    with serving(Constant()) as server:
        yield server


def keys_sent(server: ModelServer) -> list[str | None]:
    return [headers.get("Authorization") for _, headers, _ in server.asked]


# The command


def test_a_healthy_wiki_has_no_problem(wiki: LiveWiki) -> None:
    owner = wiki.status()["owner_pid"]
    arguments = ("--repository", wiki.repository, "--data-dir", wiki.data_dir, "--url", wiki.url)
    answer = doctor(*arguments, OTTERWIKI_API_KEY=KEY, SEMANTIC_MODEL_KEY=SECRET)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    lines = answer.stdout.splitlines()
    assert lines[-1] == "no problems"
    assert any(line.startswith("ok       index — 5 pages, 6 passages") and "it equals HEAD" in line for line in lines)
    assert any(line.startswith(f"ok       wiki — {wiki.url} answers: version {__version__}, 5 pages") for line in lines)
    assert f"ok       index daemon — running, process {owner}, " in answer.stdout
    assert "OTTERWIKI_API_KEY is set (environment)" in answer.stdout
    assert "it was started with other settings" in answer.stdout, "the wiki has no SEMANTIC_MODEL_KEY"
    assert KEY not in answer.stdout
    assert SECRET not in answer.stdout
    assert wiki.status()["owner_pid"] == owner


def test_programs_get_json(resting: DoctorContext) -> None:
    settings = settings_of(resting)
    answer = doctor("--repository", settings.repository, "--data-dir", settings.data_dir, "--json")
    body = json.loads(answer.stdout)
    assert answer.returncode == 0
    assert (body["version"], body["problems"]) == (__version__, 0)
    assert {frozenset(each) for each in body["findings"]} == {frozenset({"level", "what", "detail", "hint"})}
    assert {each["level"] for each in body["findings"]} <= {"ok", "note", "problem"}


def test_everything_broken_at_once_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "settings.cfg").write_text("REPOSITORY = nobody_knows\n")
    answer = doctor(
        "--url",
        f"http://127.0.0.1:{free_port()}",
        without=("numpy", "chromadb", "onnxruntime", "tokenizers", "mistune", "regex", "Stemmer"),
        PATH=str(tmp_path),
        OTTERWIKI_SETTINGS=str(tmp_path / "settings.cfg"),
        REPOSITORY=str(tmp_path / "nowhere"),
        SEMANTIC_PAGES="perhaps",
        SEMANTIC_SINC_INTERVAL="60",
        SEMANTIC_DATA_DIR=str(tmp_path / "settings.cfg" / "index"),
    )
    assert answer.returncode == 1
    assert answer.stderr == ""
    for expected in (
        "problem  settings.cfg — OTTERWIKI_SETTINGS names a file that cannot be read: name 'nobody_knows' is not defined",
        "problem  settings — SEMANTIC_PAGES is 'perhaps'; allowed: none, or some of palette, related, map, health, editor",
        "problem  settings — unknown setting SEMANTIC_SINC_INTERVAL",
        "problem  git — not found on the PATH of this process",
        f"problem  data directory — {tmp_path / 'settings.cfg' / 'index'} cannot be created: {tmp_path / 'settings.cfg'} is",
        "problem  model — the Python package numpy is missing",
        "cannot be reached: ",
    ):
        assert expected in answer.stdout
    lines = answer.stdout.splitlines()
    assert all(lines[at + 1].startswith("         hint: ") for at, line in enumerate(lines) if line.startswith("problem"))


def test_a_damaged_model_is_found(tmp_path: Path, resting: DoctorContext, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copytree(BUNDLED_MODEL, tmp_path / "minilm")
    with (copy / "model.onnx").open("r+b") as file:
        file.seek(5_000_000)
        file.write(b"damage")
    monkeypatch.setattr("otterwiki_semantic.embedding.factory.BundledModel", partial(BundledModel, copy))
    problem = the_problem(list(check_model(resting)))
    assert problem.what == "model"
    assert "model.onnx is damaged" in problem.detail
    assert problem.hint.endswith(pip_install(reinstall=True))


def test_without_a_repository_or_a_place_beside_it_the_rest_is_looked_at() -> None:
    problem = the_problem(list(run_checks(make_context(PATH, {}))))
    assert ("no repository" in problem.detail, "--repository" in problem.hint) == (True, True)
    found = list(run_checks(make_context({**PATH, "REPOSITORY": "/", "SEMANTIC_RERANKER": "cohere:rerank-v3.5"}, {})))
    assert "set SEMANTIC_DATA_DIR" in the_problem(found).detail
    assert the_problem(found).hint.startswith("correct this")
    assert {"model", "reranker", "ChromaDB"} <= {each.what for each in found}


# What is told


def test_no_secret_is_shown_and_nothing_that_a_terminal_obeys(resting: DoctorContext) -> None:
    told = f"\x1b[31m the key {SECRET} is\nnot known"
    with answers(403, {"error": {"code": "odd", "message": told}}) as server:
        secrets = dict.fromkeys(("OTTERWIKI_API_KEY", "SEMANTIC_CHROMA_TOKEN", "SEMANTIC_MODEL_KEY", "OPENAI_API_KEY"), SECRET)
        case = make_context(
            {**PATH, **secrets}, {"SECRET_KEY": SECRET}, repository=settings_of(resting).repository, url=server.url
        )
        found = list(run_checks(case))
        assert keys_sent(server) == [f"Bearer {SECRET}"]
    assert SECRET not in json.dumps([(each.detail, each.hint) for each in found])
    assert the_problem(found).detail == f"{server.url}: ?[31m the key (secret) is not known (status 403)"


def test_settings_are_named_with_their_sources_and_bad_ones_all_at_once(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository", {})
    options = {f"SEMANTIC_{name}_OPTIONS": f'{{"key": "{SECRET}"}}' for name in ("MODEL", "ANSWERS")}
    wiki = {"REPOSITORY": str(repository), "SEMANTIC_THREADS": 2, **options}
    wrong = {"SEMANTIC_PAGES": "maybe", "SEMANTIC_MODEL": "gpt", "SEMANTIC_CHROMA_URL": "http://u:p@h"}
    case = make_context({**PATH, **wrong}, wiki)
    found = [each for each in run_checks(case) if each.what == "settings"]
    assert [detail.split()[0] for _, detail in of_level(found, Level.PROBLEM)] == [
        "SEMANTIC_CHROMA_URL",
        "SEMANTIC_MODEL",
        "SEMANTIC_PAGES",
    ]
    (told,) = (detail for _, detail in of_level(found, Level.OK))
    assert told.startswith(f"set: REPOSITORY={repository} (settings.cfg), ")
    assert "SEMANTIC_THREADS=2 (settings.cfg)" in told
    assert all(f"{name} is set (settings.cfg)" in told for name in options)
    assert SECRET not in str(found)
    assert "u:p" not in str(found)


def test_a_bad_setting_is_neither_repeated_nor_used_elsewhere(resting: DoctorContext) -> None:
    case = make_context({**PATH, "SEMANTIC_MODEL_OPTIONS": f"api_key={SECRET}"}, {"REPOSITORY": "/wiki"})
    wrong = of_level(list(check_settings(case)), Level.PROBLEM)
    assert [detail[:44] for _, detail in wrong] == ["SEMANTIC_MODEL_OPTIONS is not a JSON object;"]
    given = {"SEMANTIC_MODEL": "openai:a-model", "SEMANTIC_MODEL_URL": "localhost:8080", "SEMANTIC_MODEL_KEY": SECRET}
    case = make_context({**PATH, **given}, {}, repository=settings_of(resting).repository)
    assert of_level(list(check_model(case)), Level.NOTE) == [("model", "not checked: its settings are wrong")]


def test_settings_that_contradict_each_other_leave_the_rest_to_be_looked_at(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository", {})
    url = f"http://chroma.invalid:{free_port()}"
    given = {"SEMANTIC_CHROMA_TOKEN": SECRET, "SEMANTIC_CHROMA_URL": url, "SEMANTIC_MODEL": "onnx:/nowhere"}
    found = list(run_checks(make_context({**PATH, **given}, {"REPOSITORY": str(repository)})))
    problems = {each.what: each for each in found if each.level is Level.PROBLEM}
    assert problems["settings"].detail.startswith(f"SEMANTIC_CHROMA_TOKEN would go to {url} ")
    assert problems["settings"].hint.startswith("correct this")
    assert set(problems) == {"settings", "model"}, "the server is not asked"
    assert any(each.what == "data directory" for each in found)
    assert SECRET not in str(found)


# The installation


def test_every_extra_is_looked_for_in_an_installation_that_is_as_it_should_be() -> None:
    extras = configparser.ConfigParser()
    extras.read(ROOT / "setup.cfg")
    case = make_context(PATH, {})
    looked_for = {each.what for each in check_packages(case)}
    assert {f"extra {name}" for name in extras["options.extras_require"]} - looked_for == {
        "extra site",
        "extra wiki",
        "extra dist",
        "extra test",
        "extra lint",
    }
    assert of_level([*check_installation(case), *check_packages(case)], Level.PROBLEM) == []


def test_a_package_of_the_wrong_version_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_package(tmp_path, "mistune", "2.0.5")
    fake_package(tmp_path, "otterwiki", "2.11.0")
    monkeypatch.syspath_prepend(tmp_path)
    told = {each.detail: each.hint for each in check_packages(make_context(PATH, {})) if each.level is Level.PROBLEM}
    mistune = "otterwiki-semantic requires mistune<3.4,>=3.3, but 2.0.5 is installed"
    assert told[mistune] == 'pip install "mistune<3.4,>=3.3"'
    assert "otterwiki-semantic requires otterwiki<3,>=2.26, but 2.11.0 is installed" in told


def test_the_earlier_plugin_beside_this_one_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_package(tmp_path, "otterwiki-semantic-search", "0.3.0", "semantic_search = otterwiki_semantic_search:plugin")
    monkeypatch.syspath_prepend(tmp_path)
    problem = the_problem(list(check_installation(make_context(PATH, {}))))
    assert problem.hint == "pip uninstall otterwiki-semantic-search, and restart the wiki"


# The repository and the data directory


def test_a_directory_without_a_repository_or_a_commit(tmp_path: Path) -> None:
    problem = the_problem(repository_findings(tmp_path))
    assert "not a git repository" in problem.detail
    assert problem.detail.count("git init") == 1
    assert "git init" not in problem.hint
    last = repository_findings(make_repository(tmp_path / "new", {}))[-1]
    assert (last.level, "no commit yet" in last.detail) == (Level.NOTE, True)


def test_pages_that_the_wiki_cannot_show_are_counted(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "wiki", {"home.md": "# Home", "Garden.md": "# Garden", "Tools/saw.md": "# Saw"})
    last = repository_findings(repository)[-1]
    assert last.level is Level.NOTE
    assert last.detail.startswith("the wiki cannot show 2 of them, such as Garden: their names have capitals")
    assert last.hint.startswith("set RETAIN_PAGE_NAME_CASE=True")
    for found in (
        repository_findings(repository, RETAIN_PAGE_NAME_CASE="yes"),
        repository_findings(repository, {"RETAIN_PAGE_NAME_CASE": True}),
    ):
        assert (found[-1].level, "3 pages" in found[-1].detail) == (Level.OK, True)


GERMAN = "# Häuser\n\nDie Häuser stehen nicht weit von der Straße, und das Wasser kommt aus dem Brunnen, der bei uns ist.\n"
ENGLISH = "# Houses\n\nThe houses are not far from the street, and the water comes out of the well that is on our land.\n"


@pytest.mark.parametrize(
    ("german", "english", "said"), [(3, 1, "SEMANTIC_LANGUAGES=de,en"), (3, 0, "=de,en"), (1, 2, ""), (0, 0, "")]
)
def test_pages_in_another_language_need_another_model(tmp_path: Path, german: int, english: int, said: str) -> None:
    pages = {f"de{number}.md": f"{GERMAN}{number}" for number in range(german)}
    pages |= {f"en{number}.md": f"{ENGLISH}{number}" for number in range(english)}
    repository = make_repository(tmp_path / "wiki", {"list.md": "- 10.0.0.5\n", **pages})
    for model in ("minilm", "ollama:bge-m3"):
        hints = [each.hint for each in repository_findings(repository, SEMANTIC_MODEL=model) if each.what == "languages"]
        assert len(hints) == bool(said and model == "minilm")
        assert all(hint.endswith(said) for hint in hints)


def test_synonyms_need_their_page(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "wiki", {"words.md": "a, b\n"})
    for name, is_wrong in (("words", False), ("words.md", False), ("Words", True)):
        found = repository_findings(repository, SEMANTIC_SYNONYMS=name)
        assert any(each.what == "synonyms" and each.level is Level.PROBLEM for each in found) == is_wrong


def test_ocr_needs_its_languages(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "wiki", {"home.md": "# Home"})
    found = the_problem(repository_findings(repository, SEMANTIC_OCR="eng+no_such"))
    assert (found.what, "no_such" in found.detail, "tesseract-ocr-no-such" in found.hint) == ("OCR", True, True)


def test_excluded_pages_are_counted_and_patterns_without_a_page_named(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "wiki", {"home.md": "# Home", "drafts/a.md": "# A", "drafts/b.md": "# B"})
    *_, counted, idle = repository_findings(repository, SEMANTIC_EXCLUDE="drafts/** Drafts/** home")
    assert (counted.level, counted.detail.partition(" pages ")[0]) == (Level.OK, f"{repository}, 1")
    assert counted.detail.endswith(", without 2 that SEMANTIC_EXCLUDE excludes")
    assert (idle.level, idle.detail) == (Level.NOTE, "no page's file matches Drafts/**, home of SEMANTIC_EXCLUDE")
    assert idle.hint


@as_root
def test_places_of_another_user_are_explained(resting: DoctorContext) -> None:
    place = settings_of(resting).repository
    for path in (place, place / ".git", settings_of(resting).data_dir):
        os.chown(path, 65534, 65534)
    problem = the_problem(list(check_repository(resting)))
    assert "dubious ownership" in problem.detail
    assert f"safe.directory {place}" in problem.hint
    assert "65534" in problem.hint
    problem = the_problem(list(check_data_directory(resting)))
    assert "belongs to" in problem.detail
    assert "as the user that the wiki runs as" in problem.hint


@pytest.mark.parametrize(
    ("place", "level", "part"),
    [
        ("index", Level.OK, "private, writable, with file locks"),
        ("new/index", Level.NOTE, "the first start creates it"),
        ("open", Level.NOTE, "is open to other users (mode 755), and contains the wiki's text; the next start"),
        ("repository/home.md", Level.PROBLEM, "is not a directory"),
        ("repository/home.md/index", Level.PROBLEM, "cannot be created"),
        ("/proc/self", Level.PROBLEM, "cannot write to"),
        ("n" * 120, Level.NOTE, "too long for a socket"),
    ],
)
def test_a_data_directory_is_looked_at(resting: DoctorContext, place: str, level: Level, part: str) -> None:
    settings = settings_of(resting)
    (settings.data_dir.parent / "open").mkdir(mode=0o755)
    wanted = settings.data_dir.parent / place
    before = files_of(settings.data_dir.parent)
    found = list(check_data_directory(replace(resting, settings=replace(settings, data_dir=wanted))))
    assert any(each.level is level and part in each.detail for each in found), found
    assert (level is Level.PROBLEM) == bool(of_level(found, Level.PROBLEM))
    assert files_of(settings.data_dir.parent) == before


def test_a_data_directory_open_to_others_is_a_problem(resting: DoctorContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system without permissions, which gives every file the same mode."""
    settings_of(resting).data_dir.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", lambda _: SimpleNamespace(st_mode=0o100755))
        found = list(check_data_directory(resting))
    assert "its file system cannot keep them out" in the_problem(found).detail


def test_network_file_systems_are_known() -> None:
    mounts = "/dev/sda1 / ext4 rw 0 0\nserver:/wiki /app\\040data nfs4 rw 0 0\ntmpfs /app\\040data/tmp tmpfs rw 0 0\n"
    assert file_system(Path("/app data/index"), mounts) == "nfs4"
    assert file_system(Path("/app data/tmp/x"), mounts) == "tmpfs"
    assert file_system(Path("/app"), mounts) == "ext4"


def test_room_is_measured(resting: DoctorContext, tmp_path: Path) -> None:
    def at(place: Path) -> tuple[Finding, Finding]:
        disk, memory = check_resources(replace(resting, settings=replace(settings_of(resting), data_dir=place)))
        return disk, memory

    disk, memory = at(settings_of(resting).data_dir)
    assert (disk.level, memory.what) == (Level.OK, "memory")
    assert "a rebuild needs about 0 MB" in at(tmp_path / "new")[0].detail
    if Path("/proc/1").is_dir():  # a file system without room
        full, _ = at(Path("/proc/1/index"))
        assert (full.level, "0 MB are free" in full.detail) == (Level.PROBLEM, True)


def test_the_smaller_of_the_machines_and_the_containers_memory_counts() -> None:
    machine = "MemTotal: 8000000 kB\nMemAvailable:    2000000 kB\n"
    assert available_memory(machine, "max\n", "500\n") == 2_048_000_000
    assert available_memory(machine, "300000000\n", "200000000\n") == 100_000_000
    assert available_memory("", "", "") is None


# The model


@pytest.fixture
def on_a_server(resting: DoctorContext) -> Iterator[tuple[ModelServer, DoctorContext]]:
    with serving(ModelServer()) as server:
        settings = replace(settings_of(resting), model="openai:a-model", model_url=f"{server.url}/v1", model_key=SECRET)
        yield server, replace(resting, settings=settings)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_model_is_asked_for_a_sentence_and_what_it_is_only_if_that_is_not_known(
    on_a_server: tuple[ModelServer, DoctorContext], *, is_known: bool
) -> None:
    server, case = on_a_server
    if is_known:
        open_embedder(settings_of(case)).prepare()
        server.asked.clear()
    before = files_of(settings_of(case).data_dir)
    (found,) = check_model(case)
    assert found.level is Level.OK
    assert ("its server was also asked about the model" in found.detail) is not is_known
    assert not is_known or 1 <= sum(map(len, server.texts)) <= 2
    assert files_of(settings_of(case).data_dir) == before


def test_the_device_is_named_and_a_gpu_that_the_model_does_not_use(resting: DoctorContext) -> None:
    case = make_context({**PATH, "SEMANTIC_DEVICE": "cuda"}, {}, repository=settings_of(resting).repository)
    model, device = check_model(case)
    assert model.level is Level.OK
    assert model.detail.endswith(" ms on cpu")
    assert (device.level, device.what) == (Level.NOTE, "device")
    assert "SEMANTIC_DEVICE is 'cuda', but minilm does not run on a GPU" in device.detail


@pytest.mark.parametrize("kind", ["onnx", "sentence-transformers"])
def test_a_model_that_can_run_on_a_gpu_may_be_set_to(resting: DoctorContext, tmp_path: Path, kind: str) -> None:
    given = {**PATH, "SEMANTIC_DEVICE": "cuda", "SEMANTIC_MODEL": f"{kind}:{tmp_path / 'missing'}"}
    findings = check_model(make_context(given, {}, repository=settings_of(resting).repository))
    assert [each.what for each in findings] == ["model"]


def test_a_model_that_does_not_answer_is_given_up(resting: DoctorContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.cli.doctor.services._SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = replace(settings_of(resting), model="ollama:a-model", model_url=url)
        problem = the_problem(list(check_model(replace(resting, settings=settings))))
    assert "returned no vector within" in problem.detail


# The index


def test_an_index_at_rest_is_read_and_left_as_it_is(resting: DoctorContext) -> None:
    before = files_of(settings_of(resting).data_dir)
    process, index = check_index(resting)
    assert (process.level, process.detail) == (Level.NOTE, "not running")
    assert index.level is Level.OK
    assert index.detail.startswith("5 pages, 6 passages, ")
    assert "its file is intact" in index.detail
    assert files_of(settings_of(resting).data_dir) == before


@pytest.mark.parametrize("start", [0, 30_000])
def test_a_damaged_catalog_is_found(resting: DoctorContext, start: int) -> None:
    with catalog_of(resting).open("r+b") as file:
        file.seek(start)
        file.write(b"\xa5" * 40_000)
    problem = the_problem(list(check_index(resting)))
    assert str(catalog_of(resting)) in problem.detail
    assert "rebuilt when the index daemon starts" in problem.hint


def test_what_is_odd_about_an_index_at_rest_is_told(resting: DoctorContext, tmp_path: Path) -> None:
    def last(case: DoctorContext = resting) -> str:
        *_, found = check_index(case)
        assert found.level is Level.NOTE
        return found.detail

    head = commit(settings_of(resting).repository, {"new.md": "# New\n"})
    with closing(sqlite3.connect(catalog_of(resting))) as connection, connection:
        connection.execute("INSERT INTO excluded_pages VALUES ('diary', 'a blob')")
    assert last().startswith("5 pages (1 excluded by their front matter), 6 passages, ")
    assert f"HEAD is {head[:12]}" in last()
    with closing(sqlite3.connect(catalog_of(resting))) as connection, connection:
        connection.execute("UPDATE meta SET value = 'other' WHERE name = 'fingerprint'")
    assert "built with another model" in last()
    assert last(replace(resting, settings=replace(settings_of(resting), data_dir=tmp_path / "none"))).startswith("none in ")
    with (settings_of(resting).data_dir / "owner.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "does not answer" in last()
    catalog_of(resting).with_name("catalog.sqlite3-wal").write_bytes(b"something")
    assert "was killed" in last()


def test_why_the_index_process_ended_is_read_from_its_log(resting: DoctorContext) -> None:
    line = "[2026-11-22 06:00:00,000] ERROR in otterwiki-semantic: the index process cannot work: no space left"
    log = settings_of(resting).data_dir / "owner.log"
    log.write_text(f"{line}\nTraceback (most recent call last):\n")
    assert "no space left" in the_problem(list(check_index(resting))).detail
    log.write_text(f"{line}\n[2026-11-22 06:00:01,000] INFO in otterwiki-semantic: ended\n")
    assert "no space left" in list(check_index(resting))[-1].detail
    assert of_level(list(check_index(resting)), Level.PROBLEM) == []


def owned_by(data_dir: Path, reply: dict[str, Any]) -> tuple[threading.Thread, list[bytes]]:
    """Listen as an owner of another version does, for one request."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(data_dir / "owner.sock"))
    listening.listen()
    asked: list[bytes] = []

    def answer() -> None:
        connection, _ = listening.accept()
        with listening, connection, connection.makefile("rwb") as stream:
            asked.append(stream.readline())
            stream.write(json.dumps(reply).encode() + b"\n")

    thread = threading.Thread(target=answer)
    thread.start()
    return thread, asked


@pytest.mark.parametrize(
    "reply",
    [
        {"result": {"version": "9.0.0+aaaa", "pid": 1, "repository": "/wiki", "settings": "b"}},
        {"error": {"type": "SemanticError", "message": "the index process does not understand the request"}},
    ],
)
def test_an_index_process_of_another_version_is_told_and_not_ended(resting: DoctorContext, reply: dict[str, Any]) -> None:
    thread, asked = owned_by(settings_of(resting).data_dir, reply)
    problem = the_problem(list(check_index(resting)))
    thread.join()
    assert "another version" in problem.detail
    assert "restart the wiki" in problem.hint
    assert [json.loads(line) for line in asked] == [{"call": "who"}], "an owner ends when it is asked with another version"


def test_an_index_process_of_another_repository_is_told(wiki: LiveWiki, resting: DoctorContext) -> None:
    case = replace(resting, settings=replace(settings_of(resting), data_dir=wiki.data_dir))
    problem = the_problem(list(check_index(case)))
    assert f"is in use for the repository {wiki.repository}" in problem.detail
    assert "its own SEMANTIC_DATA_DIR" in problem.hint


def test_what_the_index_says_of_itself_is_told(wiki: LiveWiki) -> None:
    running = DaemonProbe(wiki.data_dir)
    owner = running.who()
    assert owner is not None
    assert owner.version == code_version()
    status = running.status(owner)
    assert [each.what for each in status_findings(status) if each.level is Level.OK][:1] == ["index"]
    (collection,) = (each for each in status_findings(status) if each.what == "collection")
    assert collection.detail.startswith("otterwiki: ")
    trouble = Problem("the disk is full", "make room")
    failed = RebuildStatus(state=RebuildState.FAILED, error="no room", hint="make some")
    troubled = structs.replace(status, problems=(trouble,), last_error="git is gone", rebuild=failed)
    told = [(each.detail, each.hint) for each in status_findings(troubled) if each.level is Level.PROBLEM]
    assert told[0] == ("the disk is full", "make room")
    assert told[1][0] == "the last error: git is gone"
    assert told[2] == ("no room", "make some")
    behind = structs.replace(status, indexed_commit=None, pending_pages=3)
    assert "3 pages pending" in next(iter(status_findings(behind))).detail


# Over HTTP


def asked(url: str, **environment: str) -> list[Finding]:
    return list(check_wiki(make_context({**PATH, **environment}, {}, url=url)))


def test_the_wiki_refuses_a_wrong_key(wiki: LiveWiki) -> None:
    problem = the_problem(asked(wiki.url, OTTERWIKI_API_KEY="another"))
    assert "started with another OTTERWIKI_API_KEY" in problem.detail


@pytest.mark.parametrize(
    ("served", "detail", "hint"),
    [
        ((404, "<p>not found"), "answers, without the plugin (404)", "Loaded plugin: otterwiki-semantic"),
        ((200, "<p>a site"), "answers with status 200, not as a wiki would", "the address is right"),
        ((502, "<p>bad gateway"), "answers with status 502", "the address is right"),
        ((200, {"indexed_commit": None, "version": "0.0.9"}), "runs version 0.0.9", "restart the wiki"),
        ((401, {"error": {"code": "unauthorized", "message": "log in"}}), "no key was sent", "set OTTERWIKI_API_KEY"),
        ((401, {"error": {"code": "no_key_configured", "message": ""}}), "the wiki has no", "where the wiki is started"),
    ],
)
def test_what_else_answers_is_told_apart(served: tuple[int, Any], detail: str, hint: str) -> None:
    with answers(*served) as server:
        problem = the_problem(asked(server.url))
    assert detail in problem.detail
    assert hint in problem.hint


def test_the_problems_of_a_wiki_that_cannot_answer_come_with_their_hints() -> None:
    full = {"message": "the disk is full", "hint": "make room"}
    with answers(503, {"error": {"code": "index_unavailable", "message": "no room"}, "problems": [full]}) as server:
        found = asked(server.url)
    assert [each.hint for each in found][-1] == "make room"
    assert len(of_level(found, Level.PROBLEM)) == 2


def test_a_redirect_is_not_followed_with_the_key() -> None:
    with answers(200, {}) as other, answers(302, "", Location=other.url) as server:
        problem = the_problem(asked(server.url, OTTERWIKI_API_KEY=KEY))
        assert other.asked == []
    assert f"leads to {other.url}" in problem.detail


@pytest.mark.parametrize(
    ("url", "key", "detail"),
    [
        *(
            (url, "", "the URL in --url is invalid")
            for url in ("127.0.0.1:8080", "http://", "http://user:pass@wiki", "http://w:x")
        ),
        ("http://127.0.0.1:9", "a\nb", "OTTERWIKI_API_KEY has characters that cannot be sent"),
    ],
)
def test_an_address_or_a_key_that_is_none_is_not_repeated(url: str, key: str, detail: str) -> None:
    assert the_problem(asked(url, OTTERWIKI_API_KEY=key)).detail == detail


@pytest.fixture
def of_server(resting: DoctorContext) -> Callable[..., list[Finding]]:
    def check(url: str, **given: Any) -> list[Finding]:
        settings = replace(settings_of(resting), chroma_url=url, **given)
        return list(check_vector_store(replace(resting, settings=settings)))

    return check


def test_a_chromadb_server_tells_its_version_and_gets_no_database(
    shared_chroma: RunningChroma, of_server: Callable[..., list[Finding]]
) -> None:
    (found,) = of_server(shared_chroma.url)
    assert (found.level, "version 1." in found.detail) == (Level.OK, True)
    for _ in range(2):
        (found,) = of_server(shared_chroma.url, chroma_database="nobody/nowhere")
        assert (found.level, "has no database nowhere of tenant nobody yet" in found.detail) == (Level.NOTE, True)


def test_what_is_no_chromadb_server_or_wants_a_token_is_told(of_server: Callable[..., list[Finding]]) -> None:
    nobody = the_problem(of_server(f"http://127.0.0.1:{free_port()}"))
    assert (nobody.what, "SEMANTIC_CHROMA_URL" in nobody.hint) == ("ChromaDB", True)
    for served, said in (
        ((404, "<p>no"), "as ChromaDB never does"),
        ((200, {"version": 2}), "what answers is not ChromaDB"),
        ((401, {}), "wants a token: set SEMANTIC_CHROMA_TOKEN"),
    ):
        with answers(*served) as server:
            assert said in the_problem(of_server(server.url)).detail
    with answers(401, {}) as server:
        assert "correct SEMANTIC_CHROMA_TOKEN" in the_problem(of_server(server.url, chroma_token=SECRET)).detail
    assert keys_sent(server) == [f"Bearer {SECRET}"]


def test_a_chromadb_server_is_asked_as_the_index_asks_it(
    shared_chroma: RunningChroma, of_server: Callable[..., list[Finding]], tmp_path: Path
) -> None:
    with closing(GuardedChroma(shared_chroma, tmp_path, SECRET, header="X-Chroma-Token")) as guarded:
        (found,) = of_server(guarded.url, chroma_token=SECRET, chroma_ca=guarded.certificate)
        assert (found.level, "version 1." in found.detail) == (Level.OK, True)
        assert "set SEMANTIC_CHROMA_CA" in the_problem(of_server(guarded.url, chroma_token=SECRET)).detail
        (tmp_path / "empty.pem").touch()
        unreadable = the_problem(of_server(guarded.url, chroma_ca=tmp_path / "empty.pem"))
        assert "empty.pem, has no certificate that can be read" in unreadable.detail
        assert unreadable.hint.startswith("correct the SEMANTIC_CHROMA settings")
