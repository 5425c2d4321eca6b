"""docker-compose.yml: what the Compose Specification allows, with the settings there are, and commands that work.

No engine runs the containers here. The commands of the services are run as they stand, with only addresses changed.
"""

from __future__ import annotations

import configparser
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema_rs
import pytest
import yaml

from otterwiki_semantic.core.settings import SETTING_NAMES, read_settings
from tests.support.fork_server import python
from tests.support.live_wiki import KEY, LiveWiki, make_repository
from tests.support.mcp_clients import PROGRAM, environment, http_server
from tests.support.paths import ROOT
from tests.support.running_chroma import RunningChroma

FILE = ROOT / "docker-compose.yml"
SCHEMA = ROOT / "tests" / "data" / "compose-spec.json"
TOLD = {"OTTERWIKI_API_KEY": KEY, "MCP_AUTH_TOKEN": "token", "SEMANTIC_CHROMA_URL": "http://chroma:8000"}
IMAGE_PORTS = {"for people": "80", "always": "8080"}
"""Where nginx listens in the image of the wiki, as docker/entrypoint.sh of redimp/otterwiki 2.26 writes its configuration:
at LISTEN_PORT, which is 80 unless it is set, and at 8080 whatever that is."""
_VARIABLE = re.compile(r"\$(?:(\$)|\{(\w+)(?::-([^}]*))?\})")


def compose(variables: Mapping[str, str] = {}) -> Any:
    """Return the file as Compose does: `${NAME}` and `${NAME:-default}` are replaced, `$$` is a dollar sign."""

    def value(found: re.Match[str]) -> str:
        dollar, name, default = found.groups()
        return dollar or variables.get(name) or default or ""

    def replaced(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: replaced(each) for name, each in part.items()}
        if isinstance(part, list):
            return [replaced(each) for each in part]
        assert not isinstance(part, str) or "$" not in _VARIABLE.sub("", part), "what Compose knows and this does not"
        return _VARIABLE.sub(value, part) if isinstance(part, str) else part

    return replaced(yaml.safe_load(FILE.read_text(encoding="utf-8")))


def service(name: str, **variables: str) -> Any:
    return compose(variables)["services"][name]


def health_of(name: str, port: str, real_port: int) -> int:
    """Run the health check of a service on another port, as Docker does; gives its exit code."""
    kind, *words = service(name)["healthcheck"]["test"]
    command = ["/bin/sh", "-c", *words] if kind == "CMD-SHELL" else words
    assert any(port in word for word in command)
    asked = [word.replace(port, str(real_port)) for word in command]
    return subprocess.run(asked, capture_output=True, timeout=30, check=False).returncode


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, handbook: dict[str, str | bytes]) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("compose")
    repository = make_repository(place / "repository", handbook)
    with LiveWiki(repository, place / "index") as live:
        live.wait_until_indexed()
        yield live


@pytest.mark.parametrize("variables", [{}, TOLD], ids=["nothing told", "everything told"])
def test_the_file_is_what_the_specification_allows(variables: dict[str, str]) -> None:
    validator = jsonschema_rs.Draft7Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert [error.message for error in validator.iter_errors(compose(variables))] == []
    wrong = compose(variables)
    wrong["services"]["wiki"]["healthcheck"]["interval"] = 30
    wrong["services"]["wiki"]["heathcheck"] = {}
    assert len(list(validator.iter_errors(wrong))) == 2


def test_without_variables_there_is_no_key_and_no_profile() -> None:
    assert [name for name, each in compose()["services"].items() if "profiles" not in each] == ["wiki"]
    settings = read_settings({"REPOSITORY": "/app-data/repository"}, service("wiki")["environment"])
    assert (settings.api_key, settings.chroma_url) == (None, None)
    answer = subprocess.run(
        [python(), PROGRAM, *service("mcp")["entrypoint"][1:]],
        env=environment(**service("mcp")["environment"]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert "set MCP_AUTH_TOKEN" in answer.stderr


def test_variables_reach_the_services_that_need_them() -> None:
    settings = read_settings({"REPOSITORY": "/app-data/repository"}, service("wiki", **TOLD)["environment"])
    assert (settings.api_key, settings.chroma_url) == (KEY, "http://chroma:8000")
    assert service("mcp", **TOLD)["environment"]["OTTERWIKI_API_KEY"] == KEY
    assert "environment" not in service("chroma", **TOLD)
    assert service("wiki", PORT="9000")["ports"] == [f"9000:{IMAGE_PORTS['for people']}"]
    wiki = urlsplit(service("mcp")["environment"]["OTTERWIKI_URL"])
    assert (wiki.hostname, str(wiki.port or 80)) == ("wiki", IMAGE_PORTS["for people"])
    assert "LISTEN_PORT" not in service("wiki")["environment"]
    assert "ports" not in service("chroma", **TOLD), "it asks for no password"
    assert all(port.startswith("127.0.0.1:") for port in service("mcp", **TOLD)["ports"])


def test_every_variable_is_a_setting_or_described() -> None:
    of_services = {name for each in compose()["services"].values() for name in each.get("environment", {})}
    documented = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    assert [name for name in of_services - set(SETTING_NAMES) if f"| `{name}` |" not in documented] == []
    substituted = {found[2] for found in _VARIABLE.finditer(FILE.read_text(encoding="utf-8")) if found[2]}
    described = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert [name for name in substituted if f"`{name}`" not in described] == []


def test_the_image_installs_extras_that_there_are_from_files_that_it_is_given() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = service("wiki")["build"]["args"]["EXTRAS"]
    assert f"ARG EXTRAS={extras}\n" in (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert set(extras.split(",")) <= set(setup["options.extras_require"])
    given = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {"setup.cfg", "pyproject.toml", "otterwiki_semantic"} <= given
    assert {setup["metadata"]["license_files"], setup["metadata"]["long_description"].removeprefix("file: ")} <= given


def test_every_builder_notices_that_the_package_has_changed() -> None:
    steps = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert "COPY --from=package /package /package" in steps
    assert not any("--mount" in step for step in steps), "Podman takes such a step from its cache, whatever is mounted"


def test_the_wiki_is_healthy_while_it_answers(live: LiveWiki) -> None:
    port = IMAGE_PORTS["always"]
    asked = " ".join(service("wiki")["healthcheck"]["test"])
    assert re.findall(r"http://([^/]+)/", asked) == [f"127.0.0.1:{port}"], "where the image listens"
    assert health_of("wiki", port, live.port) == 0
    assert health_of("wiki", port, 1) != 0
    in_image = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert " ".join(service("wiki")["healthcheck"]["test"][1:]) in in_image


def test_agents_search_the_wiki_through_the_mcp_service(live: LiveWiki, tmp_path: Path) -> None:
    mcp = service("mcp", **TOLD)
    program, command, *arguments = mcp["entrypoint"]
    assert (program, command) == (Path(PROGRAM).name, "mcp")
    told = {**mcp["environment"], "OTTERWIKI_URL": live.url}
    listening = [word.replace(":8000", ":0") for word in arguments]
    with http_server(tmp_path / "mcp.log", *listening, **told) as server:
        here = replace(server, url=server.url.replace("0.0.0.0", "127.0.0.1"))
        with here.connected() as agent:
            assert "Bleeding a radiator" in agent.text("semantic_search", query="a gurgling radiator", n=1)
        port = int(here.url.split(":")[2].split("/")[0])
        assert health_of("mcp", "8000", port) == 0
    assert health_of("mcp", "8000", port) != 0, "it was stopped"
    assert health_of("mcp", "8000", live.port) != 0, "the wiki is no MCP server"


def test_chroma_is_healthy_while_it_answers(chroma: RunningChroma) -> None:
    assert health_of("chroma", "8000", chroma.port) == 0
    chroma.stop()
    assert health_of("chroma", "8000", chroma.port) != 0
    assert service("chroma")["image"] == f"chromadb/chroma:{version('chromadb')}", "the tests run against it"
