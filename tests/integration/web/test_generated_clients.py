"""Clients that generators write from the OpenAPI document search a served wiki.

The generators are commands: `pipx install openapi-python-client`, `npm install --global openapi-typescript typescript`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.live_wiki import KEY, LiveWiki

PYTHON, TYPESCRIPT = "openapi-python-client", "openapi-typescript"
DOCUMENT = "/api/v1/semantic-search/openapi.json"
_PYTHON_PROGRAM = """
import sys
from wiki_client import AuthenticatedClient
from wiki_client.api.default import inspect_page, read_page, search, search_many
from wiki_client.models import Answer, Answers, ErrorAnswer, Hit, PageView, SearchFieldsItem, SearchHighlight
from wiki_client.models import SearchManyBody, SearchManyBodyQueriesItemType1, SearchMode, SelectedAnswer

url, key = sys.argv[1:]
with AuthenticatedClient(base_url=f"{url}/api/v1", token=key) as client:
    found = search.sync(client=client, q="bleeding a radiator", n=2, mode=SearchMode.HYBRID, tag=["winter"])
    assert isinstance(found, Answer), found
    hit = found.results[0]
    assert isinstance(hit, Hit), hit
    assert found.total == len(found.results), found
    page = read_page.sync(hit.path, client=client)
    assert isinstance(page, PageView) and page.title == hit.title, page
    many = search_many.sync(client=client, body=SearchManyBody(queries=["frost", "siren"], n=1))
    assert isinstance(many, Answers) and [answer.query for answer in many.answers] == ["frost", "siren"], many
    own = SearchManyBodyQueriesItemType1(query="siren", limit=1)
    mixed = search_many.sync(client=client, body=SearchManyBody(queries=["frost", own], n=2))
    assert isinstance(mixed, Answers) and [answer.total for answer in mixed.answers] == [2, 1], mixed
    one = search_many.sync(client=client, body=SearchManyBody(query="frost", limit=1, offset=1))
    assert isinstance(one, Answer) and one.total == 1, one
    marked = search.sync(client=client, q="hissing screw", highlight=SearchHighlight.HTML, crop=20, limit=1)
    assert isinstance(marked, Answer) and "<mark>" in marked.results[0].excerpt_html, marked
    chosen = search.sync(client=client, q="radiator", fields=[SearchFieldsItem.PATH, SearchFieldsItem.TITLE])
    assert isinstance(chosen, SelectedAnswer), chosen
    assert set(chosen.results[0].additional_properties) == {"path", "title"}, chosen
    lacking = inspect_page.sync("nowhere", client=client)
    assert isinstance(lacking, ErrorAnswer) and lacking.error.code == "page_unknown", lacking
    print(hit.path)
"""
_TYPESCRIPT_PROGRAM = """
import type { components, operations } from "./wiki";

declare const process: { argv: string[] };
type Found = components["schemas"]["Answer"] & operations["search"]["responses"][200]["content"]["application/json"];
type Refused = operations["search"]["responses"][422]["content"]["application/problem+json"];
const [url, key] = process.argv.slice(2);

async function ask(query: operations["search"]["parameters"]["query"], accept: string): Promise<unknown> {
  const given = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
  const headers = { Authorization: `Bearer ${key}`, Accept: accept };
  return (await fetch(`${url}/api/v1/semantic-search?${given}`, { headers })).json();
}

async function main(): Promise<void> {
  const found = (await ask({ q: "bleeding a radiator", n: 2, mode: "hybrid" }, "application/json")) as Found;
  const hit: components["schemas"]["Hit"] = found.results[0];
  const [start, end]: [number, number] = hit.highlights[0];
  if (!(start < end)) throw new Error("no highlight");
  const refused = (await ask({ q: "x", n: 51 }, "application/problem+json")) as Refused;
  if (refused.status !== 422 || refused.code !== "invalid_parameter") throw new Error(JSON.stringify(refused));
  console.log(hit.path);
}

main();
"""


def run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def document(wiki: LiveWiki, tmp_path: Path) -> Path:
    path = tmp_path / "openapi.json"
    path.write_bytes(wiki.get(DOCUMENT).body)
    return path


@pytest.mark.skipif(shutil.which(PYTHON) is None, reason=f"{PYTHON} is not installed")
def test_a_generated_python_client_searches(wiki: LiveWiki, document: Path, tmp_path: Path) -> None:
    pytest.importorskip("attrs", reason="generated clients need attrs")
    config = tmp_path / "config.yml"
    config.write_text("post_hooks: []\n", encoding="utf-8")
    options = ("--output-path", tmp_path / "wiki_client", "--meta", "none", "--config", config, "--fail-on-warning")
    run(PYTHON, "generate", "--path", document, *options)
    found = run(sys.executable, "-c", _PYTHON_PROGRAM, wiki.url, KEY, PYTHONPATH=str(tmp_path))
    assert found.strip() == "house/heating"


@pytest.mark.skipif(
    any(shutil.which(name) is None for name in (TYPESCRIPT, "tsc", "node")),
    reason=f"{TYPESCRIPT}, tsc or node is not installed",
)
def test_generated_typescript_types_fit(wiki: LiveWiki, document: Path, tmp_path: Path) -> None:
    run(TYPESCRIPT, document, "--output", tmp_path / "wiki.d.ts")
    (tmp_path / "program.ts").write_text(_TYPESCRIPT_PROGRAM, encoding="utf-8")
    options = ("--strict", "--target", "es2022", "--module", "node16", "--lib", "es2022,dom")
    run("tsc", *options, tmp_path / "program.ts")
    assert run("node", tmp_path / "program.js", wiki.url, KEY).strip() == "house/heating"
