from __future__ import annotations

import gc
import os
import re
import shutil
import ssl
from collections.abc import Generator, Iterator
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.support import fork_server
from tests.support.fake_time import Clock
from tests.support.light_parts import NICE, SESSION, SITE
from tests.support.outliving import note_session, outliving_processes

_SETTINGS: dict[str, Any] = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("default", **_SETTINGS, max_examples=25)
hypothesis.settings.register_profile("fast", **_SETTINGS, max_examples=15)
hypothesis.settings.register_profile("chaos", **_SETTINGS, max_examples=1_000)
hypothesis.settings.load_profile("default")

_HERE = Path(__file__).parent
_MARKERS = {
    "unit": (),
    "integration": ("model",),
    "system": ("model", "served"),
    "browser": ("model", "served", "browser"),
    "chaos": ("model",),
}
_WITH_LIGHT_PARTS = {"integration", "system", "browser"}
_SERVED = {"app": "Flask", "client": "FlaskClient", "wiki": "LiveWiki", "wikis": "Wikis"}
"""Fixtures that are a served wiki, by name, and their types: what is called so may be something else in some module."""
_MEMORY, _MEMORY_BYTES = Path("/dev/shm"), 4 << 30
_LONGEST_ID, _SHORTENED_ID = 60, 20
_BROWSERS = 2
_WITH_PYTORCH = {"tests/integration/embedding/test_embedders.py", "tests/integration/search/test_reranking.py"}
_HAS_PASSED = pytest.StashKey[bool]()
_NUMBERS = count()


def pytest_configure() -> None:
    """Let temporary files live in memory if there is room: a disk that is busy with other work holds every commit up."""
    note_session()
    # Threads of several processes wait for each other in busy loops.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if os.access(_MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(_MEMORY).free >= _MEMORY_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))
    fork_server.begin_session()


def pytest_sessionstart() -> None:
    gc.disable()  # until all tests are collected


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Fork the workers from a process that has collected the tests: importing all modules takes seven seconds.

    Meanwhile, the fork server for index daemons starts on another core.
    """
    if not all(Path(each).is_relative_to("tests/unit") for each in config.args):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(SITE), prepend=os.pathsep)
            fork_server.begun("index")
    for spec in specs:
        spec.python = fork_server.started("tests", *config.invocation_params.args)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Have few workers open a browser and a wiki for it, and one import PyTorch: both take five seconds of processor time."""

    def scope_of(nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file in _WITH_PYTORCH:
            return "PyTorch"
        return f"browser {sum(file.encode()) % _BROWSERS}" if file.startswith("tests/browser/") else file

    if config.getoption("dist") != "loadfile":
        return None
    scheduling = import_module("xdist.scheduler").LoadFileScheduling(config, log)
    scheduling._split_scope = scope_of
    return scheduling


def pytest_collection_finish() -> None:
    """Have the garbage collector leave out the tests themselves, and run seldom: it took a seventh of the processor time."""
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session", autouse=True)
def impatience() -> Iterator[None]:
    """Let engines in this process fill ChromaDB soon after a change, and work at full priority: many tests wait for both.

    With SEMANTIC_VECTOR_SEARCH=chroma, as in `make test-chroma`, they also search in it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ssl.create_default_context", cache(ssl.create_default_context))  # each HTTP client has one, in 40 ms
        patch.setattr("otterwiki_semantic.indexing.mirror_job._QUIET_SECONDS", 0.1)
        for module, niceness in NICE.items():
            patch.setattr(f"{module}.{niceness}", 0)
        if os.environ.get("SEMANTIC_VECTOR_SEARCH") == "chroma":
            patch.setattr("otterwiki_semantic.storage.generation.EXACT", 0)
        yield


@pytest.fixture(scope="module", autouse=True)
def light_parts(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give engines in this process, and in those that tests start, light parts, unless the module is marked otherwise."""
    if _part(request.path) not in _WITH_LIGHT_PARTS or request.node.get_closest_marker("real_processes"):
        yield
        return
    from tests.support import light_parts

    with light_parts.installed(real=request.node.get_closest_marker("real_parts") is not None):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note which tests fail."""
    report = yield
    if call.when == "call":
        item.stash[_HAS_PASSED] = report.passed
    return report


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a directory that no earlier test had, as an index daemon may outlive its test; kept if the test fails."""
    name = re.sub(r"\W", "_", request.node.name)[:_SHORTENED_ID]
    path = tmp_path_factory.mktemp(f"{name}-{next(_NUMBERS)}", numbered=False)
    yield path
    if request.node.stash.get(_HAS_PASSED, False):
        shutil.rmtree(path, ignore_errors=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if a process outlives its test."""
    if not fork_server.end_session():
        return
    left = outliving_processes()
    shutil.rmtree(os.environ.pop(SESSION), ignore_errors=True)  # what outlives its test may still write to it
    for process in left:
        print(f"\nERROR: a process outlives its test: {process}")
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a test after the beginning and the length of a long text, such as a huge number."""
    if isinstance(val, str | bytes) and len(ascii(val)) > _LONGEST_ID:
        return f"{ascii(val)[:_SHORTENED_ID]}...{len(val)}"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with what it needs (see `markers` in pyproject.toml), and begin with those that take longest."""
    for item in items:
        for marker in _MARKERS[_part(item.path)]:
            item.add_marker(marker)
        if isinstance(item, pytest.Function) and _is_served(item):
            item.add_marker("served")
    items.sort(key=lambda item: -list(_MARKERS).index(_part(item.path)))


@cache
def _part(path: Path) -> str:
    return path.relative_to(_HERE).parts[0]


def _is_served(item: pytest.Function) -> bool:
    types = item.function.__annotations__
    return any(name in item.fixturenames and types.get(name, kind) == kind for name, kind in _SERVED.items())
