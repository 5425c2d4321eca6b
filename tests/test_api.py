"""The API in the wiki's own application, through pytest-flask's client: every status, every shape."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.live_wiki import KEY, eventually

BEARER = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture(autouse=True)
def indexed(client: FlaskClient) -> None:
    def ready() -> bool:
        status = client.get("/api/v1/semantic-search/status", headers=BEARER).json
        assert status is not None
        return bool(status["status"] == "ready" and status["indexed_commit"] == status["head_commit"])

    eventually(ready)


def search(client: FlaskClient, **parameters: Any) -> TestResponse:
    return client.get("/api/v1/semantic-search", query_string=parameters, headers=BEARER)


def assert_error(response: TestResponse, status: int, code: str, *parts: str) -> None:
    assert response.status_code == status
    assert response.content_type == "application/json"
    assert response.json is not None
    assert list(response.json) == ["error"]
    assert response.json["error"]["code"] == code
    for part in parts:
        assert part in response.json["error"]["message"]


def test_an_answer_has_every_field(client: FlaskClient) -> None:
    body = search(client, q="bleeding a radiator that gurgles", n=1).json
    assert body is not None
    (hit,) = body.pop("results")
    commit = body["index"]["head"]
    assert body == {
        "query": "bleeding a radiator that gurgles",
        "total": 1,
        "confident": True,
        "index": {"commit": commit, "head": commit, "pending_pages": 0},
    }
    assert hit.pop("updated").endswith("+00:00")
    assert hit.pop("score") > 0
    marked = {hit["snippet"][start:end] for start, end in hit.pop("highlights")}
    assert marked >= {"Bleeding", "radiator", "gurgles"}
    assert hit.pop("snippet").startswith("[Heating > Bleeding a radiator] If it gurgles")
    assert hit.pop("text").endswith("fill up to one and a half bar.")
    assert hit.pop("similarity") == pytest.approx(1 - hit.pop("distance"))
    assert "Bleeding a radiator" in hit.pop("headings")
    assert (hit.pop("text_start_line"), hit.pop("text_end_line")) in {(7, 21), (17, 21)}
    assert hit == {
        "name": "heating",
        "path": "house/heating",
        "title": "Heating",
        "category": "house",
        "tags": ["winter", "pipes"],
        "section": "Bleeding a radiator",
        "section_path": ["Heating", "Bleeding a radiator"],
        "anchor": "bleeding-a-radiator",
        "url": "/house/heating#bleeding-a-radiator",
        "start_line": 17,
        "end_line": 21,
        "chunk_index": 1,
        "total_chunks": 2,
        "page_word_count": 137,
        "prefix_length": len("[Heating > Bleeding a radiator] "),
        "overlap_length": 0,
        "relevant": True,
        "also_on": [],
    }


def test_the_url_leads_to_the_heading_as_the_wiki_renders_it(client: FlaskClient) -> None:
    body = search(client, q="bleeding a radiator", n=1).json
    assert body is not None
    path, anchor = body["results"][0]["url"].split("#")
    assert f'id="{anchor}"' in client.get(path).text


def test_results_by_meaning_come_nearest_first_and_limited(client: FlaskClient) -> None:
    body = search(client, q="radiator", n=4, max_chunks_per_page=1, mode="semantic").json
    assert body is not None
    distances = [hit["distance"] for hit in body["results"]]
    assert distances == sorted(distances)
    assert len({hit["path"] for hit in body["results"]}) == len(distances) == 4


def test_defaults_are_five_results_two_a_page(client: FlaskClient) -> None:
    body = search(client, q="radiator").json
    assert body is not None
    assert body["total"] == 5
    assert [hit["path"] for hit in body["results"]].count("house/heating") == 2


@pytest.mark.parametrize(
    ("parameters", "parts"),
    [
        ({}, ("q is missing", "2,000")),
        ({"q": ""}, ("q is empty",)),
        ({"q": " \t"}, ("q is empty",)),
        ({"q": "x" * 2001}, ("q has 2,001 characters", "1 to 2,000")),
        ({"q": "x", "n": "0"}, ("n is '0'", "1 to 50")),
        ({"q": "x", "n": "51"}, ("n is '51'", "1 to 50")),
        ({"q": "x", "n": "five"}, ("n is 'five'", "1 to 50")),
        ({"q": "x", "n": ""}, ("n is ''", "1 to 50")),
        ({"q": "x", "n": "9" * 5000}, ("n is", "1 to 50")),
        ({"q": "x", "max_chunks_per_page": "6"}, ("max_chunks_per_page is '6'", "1 to 5")),
        ({"q": "x", "max_chunks_per_page": "-1"}, ("max_chunks_per_page is '-1'", "1 to 5")),
    ],
)
def test_a_bad_parameter_is_named_with_what_is_allowed(
    client: FlaskClient, parameters: dict[str, str], parts: tuple[str, ...]
) -> None:
    assert_error(search(client, **parameters), 422, "invalid_parameter", *parts)


@pytest.mark.parametrize(
    "query", ["'\"; DROP TABLE pages; --", "🦦" * 500, "\x00\x01", "ünïcödé", "<script>", "%00", "a" * 2000]
)
def test_any_text_is_a_safe_query(client: FlaskClient, query: str) -> None:
    response = search(client, q=query)
    assert response.status_code == 200
    assert response.json is not None
    assert response.json["query"] == query


def post(client: FlaskClient, body: Any, **options: Any) -> TestResponse:
    return client.post("/api/v1/semantic-search", json=body, headers=BEARER, **options)


def test_many_queries_get_the_answers_they_get_alone(client: FlaskClient) -> None:
    queries = ["burst pipe", "vegetables", "broken disk"]
    body = post(client, {"queries": queries, "n": 2}).json
    assert body is not None
    assert body["answers"] == [search(client, q=query, n=2).json for query in queries]


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({}, "queries is missing"),
        ({"queries": []}, "queries has 0 entries"),
        ({"queries": ["x"] * 33}, "queries has 33 entries; allowed are 1 to 32"),
        ({"queries": "x"}, "it has to be a list"),
        ({"queries": ["x", 7]}, "queries[1] is 7"),
        ({"queries": ["x", ""]}, "queries[1] is empty"),
        ({"queries": ["x"], "n": True}, "n is True"),
        ({"queries": ["x"], "n": 1.5}, "n is 1.5"),
    ],
)
def test_a_bad_field_of_a_body_is_named(client: FlaskClient, body: Any, part: str) -> None:
    assert_error(post(client, body), 422, "invalid_parameter", part)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[1]", b'"text"', b"null"])
def test_a_malformed_body_is_refused(client: FlaskClient, data: bytes) -> None:
    response = client.post("/api/v1/semantic-search", data=data, headers=BEARER)
    assert_error(response, 400, "bad_request", "queries")


def test_a_huge_body_is_refused(client: FlaskClient) -> None:
    response = client.post("/api/v1/semantic-search", data=b" " * (1 << 20) + b"{}", headers=BEARER)
    assert_error(response, 413, "too_large", "1,048,576")


def test_the_status_says_what_the_index_holds(client: FlaskClient) -> None:
    body = client.get("/api/v1/semantic-search/status", headers=BEARER).json
    assert body is not None
    assert body["status"] == "ready"
    assert body["indexed_commit"] == body["head_commit"]
    assert (body["pending_pages"], body["pages"], body["chunks"]) == (0, 5, 6)
    assert body["model"] == "all-MiniLM-L6-v2"
    assert body["last_error"] is None


def test_a_rebuild_is_started_once_and_told_of(client: FlaskClient) -> None:
    response = client.post("/api/v1/reindex", headers=BEARER)
    assert response.status_code == 202
    assert response.json == {"status": "started"}
    second = client.post("/api/v1/reindex", headers=BEARER)
    if second.status_code != 202:
        assert_error(second, 409, "reindex_running", "has been running since")

    def done() -> dict[str, Any] | None:
        status: dict[str, Any] = client.get("/api/v1/reindex/status", headers=BEARER).get_json()
        return status if status["state"] != "running" else None

    status = eventually(done)
    assert status is not None
    assert status["state"] == "done"
    assert (status["pages_done"], status["pages_total"]) == (5, 5)
    assert (status["chunks_done"], status["chunks_total"]) == (6, 6)
    assert status["started"] <= status["finished"]
    assert status["error"] is None
    assert status["seconds_left"] is None


def test_the_earlier_plugins_status_needs_no_key(client: FlaskClient) -> None:
    response = client.get("/api/v1/chroma-status")
    assert response.status_code == 200
    body = response.json
    assert body is not None
    assert sorted(body) == ["collection", "document_count", "status"]
    assert body["status"] == "ok"
    assert body["document_count"] == 6


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/api/v1/semantic-search", "GET, POST"),
        ("PUT", "/api/v1/semantic-search", "GET, POST"),
        ("GET", "/api/v1/reindex", "POST"),
        ("POST", "/api/v1/reindex/status", "GET"),
        ("POST", "/api/v1/semantic-search/status", "GET"),
        ("POST", "/api/v1/chroma-status", "GET"),
    ],
)
def test_a_wrong_method_is_refused_with_those_that_are_right(client: FlaskClient, method: str, path: str, allowed: str) -> None:
    response = client.open(path, method=method, headers=BEARER)
    assert_error(response, 405, "method_not_allowed", method)
    assert sorted(response.headers["Allow"].split(", ")) == sorted(allowed.split(", "))


def test_an_unknown_route_is_an_error_in_json(client: FlaskClient) -> None:
    assert_error(client.get("/api/v1/semantic-search/nothing", headers=BEARER), 404, "not_found", "nothing")


def test_other_pages_under_the_prefix_are_the_wikis(client: FlaskClient) -> None:
    assert client.get("/api/v1/notes").content_type.startswith("text/html")


def test_a_head_request_is_answered(client: FlaskClient) -> None:
    response = client.head("/api/v1/semantic-search", query_string={"q": "x"}, headers=BEARER)
    assert response.status_code == 200
    assert response.data == b""


def test_an_index_that_cannot_answer_is_unavailable(app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from otterwiki_semantic.config import Settings

    index = app.extensions["otterwiki_semantic"]
    nowhere = Settings(index._settings.repository, index._settings.repository / "home.md" / "index")
    monkeypatch.setattr(index, "_settings", nowhere)
    monkeypatch.setattr(index, "_owner", None)
    response = search(client, q="x")
    assert_error(response, 503, "index_unavailable", "SEMANTIC_DATA_DIR")
    assert response.headers["Retry-After"] == "5"
    assert client.get("/api/v1/chroma-status").status_code == 503
