"""The API in the wiki's own application, through pytest-flask's client: every status, every shape."""

from __future__ import annotations

import json
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest
from flask import Flask, url_for
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from otterwiki_semantic.core.records import Hit
from otterwiki_semantic.daemon import IndexClient
from otterwiki_semantic.web.api.operations import IGNORED_PARAMETERS
from otterwiki_semantic.web.pages.layout import page_urls
from tests.support.live_wiki import KEY, eventually

BEARER = {"Authorization": f"Bearer {KEY}"}
WITHOUT_PARAMETERS = (
    *("/semantic-search/status", "/semantic-search/map", "/semantic-search/metrics", "/semantic-search/openapi.json"),
    *("/semantic-search/insight/home", "/chroma-status"),
)


@pytest.fixture(autouse=True)
def indexed(client: FlaskClient) -> None:
    def ready() -> bool:
        status = client.get("/api/v1/semantic-search/status", headers=BEARER).get_json()
        return bool(status["status"] == "ready" and status["indexed_commit"] == status["head_commit"])

    eventually(ready)


def search(client: FlaskClient, **parameters: Any) -> TestResponse:
    return client.get("/api/v1/semantic-search", query_string=parameters, headers=BEARER)


def assert_error(response: TestResponse, status: int, code: str, *parts: str) -> None:
    assert response.status_code == status
    assert response.content_type == "application/json"
    assert list(response.get_json()) == ["error", "request_id", *(["pages"] if code == "page_unknown" else [])]
    assert response.get_json()["request_id"] == response.headers["X-Request-ID"]
    assert response.get_json()["error"]["code"] == code
    for part in parts:
        assert part in response.get_json()["error"]["message"]


def timeless(answer: Any) -> dict[str, Any]:
    """An answer without the time that it took."""
    assert answer["processing_ms"] > 0
    return {name: value for name, value in answer.items() if name != "processing_ms"}


def test_an_answer_has_every_field(client: FlaskClient) -> None:
    body = search(client, q="bleeding a radiator that gurgles", n=1).get_json()
    assert list(body) == ["query", "total", "total_hits", "confident", "processing_ms", "index", "results"]
    (hit,) = body.pop("results")
    assert list(hit)[:6] == ["path", "title", "section", "breadcrumb", "url", "score"]
    assert 0 < body.pop("processing_ms") < 10_000
    commit = body["index"]["head"]
    assert body == {
        "query": "bleeding a radiator that gurgles",
        "total": 1,
        "total_hits": {"value": 6, "relation": "eq"},
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
        "breadcrumb": "Heating > Bleeding a radiator",
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


@pytest.mark.parametrize("flag", ["1", "true"])
def test_an_answer_for_clients_of_the_earlier_plugin_has_its_types(client: FlaskClient, flag: str) -> None:
    parameters = {"q": "bleeding a radiator that gurgles", "n": 3, "explain": "true", "facets": "true"}
    body, compat = search(client, **parameters).get_json(), search(client, **parameters, compat=flag).get_json()
    assert [hit["section_path"] for hit in compat["results"]] == [hit["breadcrumb"] for hit in body["results"]]
    assert compat["results"][0]["section_path"] == "Heating > Bleeding a radiator"
    for hit in (*body["results"], *compat["results"]):
        assert isinstance(hit.pop("distance"), float)
        hit.pop("section_path")
    assert timeless(compat) == timeless(body)
    few, many = (search(client, q="the", n=n, max_chunks_per_page=9, compat="1").get_json() for n in ("0", "1000"))
    assert len(few["results"]) == 1 < len(many["results"])
    assert search(client, q="the", n="1000").status_code == 422
    assert search(client, q="the", n="x", compat="1").status_code == 422
    assert timeless(search(client, q="radiator", compat="false").get_json()) == timeless(
        search(client, q="radiator").get_json()
    )


def test_the_url_leads_to_the_heading_as_the_wiki_renders_it(client: FlaskClient) -> None:
    body = search(client, q="bleeding a radiator", n=1).get_json()
    path, anchor = body["results"][0]["url"].split("#")
    assert f'id="{anchor}"' in client.get(path).text


def test_defaults_are_five_results_two_a_page(client: FlaskClient) -> None:
    body = search(client, q="radiator").get_json()
    assert body["total"] == 5
    assert [hit["path"] for hit in body["results"]].count("house/heating") == 2


def post(client: FlaskClient, body: Any, **options: Any) -> TestResponse:
    return client.post("/api/v1/semantic-search", json=body, headers=BEARER, **options)


def test_many_queries_get_the_answers_they_get_alone(client: FlaskClient) -> None:
    queries = ["burst pipe", "vegetables", "broken disk"]
    body = post(client, {"queries": queries, "n": 2}).get_json()
    alone = [search(client, q=query, n=2).get_json() for query in queries]
    assert list(map(timeless, body["answers"])) == list(map(timeless, alone))


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[1]", b'"text"', b"null"])
def test_a_malformed_body_is_refused(client: FlaskClient, data: bytes) -> None:
    response = client.post("/api/v1/semantic-search", data=data, headers=BEARER)
    assert_error(response, 400, "bad_request", "queries")


def test_the_status_says_what_the_index_holds(client: FlaskClient) -> None:
    body = client.get("/api/v1/semantic-search/status", headers=BEARER).get_json()
    assert body["status"] == "ready"
    assert body["indexed_commit"] == body["head_commit"]
    assert (body["pending_pages"], body["pages"], body["chunks"]) == (0, 5, 6)
    assert body["model"] == "all-MiniLM-L6-v2"
    assert body["last_error"] is None


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/semantic-search?q=x&tags=winter", None, "unknown parameter 'tags'; did you mean 'tag'?"),
        ("/semantic-search?q=x&size=3", None, "unknown parameter 'size'; allowed are q, n, max_chunks_per_page, "),
        ("/semantic-search?q=x&n=3&n=3&_=1", None, "n is given 2 times; allowed is once"),
        ("/semantic-search?q=x&=", None, "unknown parameter ''; allowed are q, "),
        *((f"{path}?full=true", None, "unknown parameter 'full'; none is allowed") for path in WITHOUT_PARAMETERS),
        ("/related?path=home&sort=updated", None, "unknown parameter 'sort'; allowed are path, n"),
        ("/related", None, "path is missing"),
        ("/semantic-search/suggest?query=a", None, "unknown parameter 'query'; allowed are q, n, category, "),
        ("/semantic-search/suggest?q=" + "a" * 10_000, None, "q has 10,000 characters; allowed are 0 to 2,000"),
        ("/pages/home?line=1", None, "unknown parameter 'line'; did you mean 'lines'?"),
        ("/related", {}, "text is missing"),
        ("/related", {"text": "x" * 100_001}, "text has 100,001 characters; allowed are 0 to 100,000"),
        ("/related", {"text": "x", "page": "home"}, "unknown parameter 'page'"),
        ("/semantic-search", {}, "queries is missing"),
        ("/semantic-search", {"queries": ["x"] * 33}, "queries has 33 entries; allowed are 1 to 32"),
        ("/semantic-search", {"queries": "x"}, "it has to be a list"),
        ("/semantic-search", {"queries": ["x", 7]}, "queries[1] is 7"),
        ("/semantic-search", {"queries": ["x", ""]}, "queries[1] is empty"),
        ("/semantic-search", {"queries": ["x"], "size": None}, "unknown parameter 'size'; allowed are que"),
        ("/semantic-search", '{"queries": ["x"], "n": 3, "n": 4}', "'n' is given more than once"),
        ("/semantic-search", {"queries": ["x"], "_": 1}, "unknown parameter '_'; allowed are "),
        ("/semantic-search?n=3", {"queries": ["x"]}, "unknown parameter 'n' in the query string; none is allowed"),
        ("/semantic-search", {"query": "x", "queries": ["x"]}, "query and queries are both given"),
        ("/semantic-search", {"query": ""}, "query is empty"),
        ("/semantic-search", {"queries": ["x", {}]}, "queries[1]: query is empty"),
        (
            "/semantic-search",
            {"queries": [{"query": "x", "n": 0}]},
            "queries[0]: n is 0; allowed are the whole numbers 1 to 50",
        ),
        ("/semantic-search", {"queries": [{"query": "x", "compat": True}]}, "queries[0]: unknown parameter 'compat'"),
        (
            "/semantic-search",
            {"queries": [{"query": "x", "mode": "keyword"}], "semantic_ratio": 1},
            "queries[0]: semantic_ratio",
        ),
        ("/semantic-search", {"queries": ["x"], "offset": 999, "limit": 2}, "allowed are 1,000 together"),
        ("/semantic-search", {"queries": ["x", "y"], "limit": 1000}, "the queries ask for 2,000 results; allowed are 1,600"),
        ("/semantic-search", {"query": "x", "crop": 4}, "crop is 4; allowed are the whole numbers 5 to 500"),
    ],
)
def test_an_invalid_request_is_refused_with_what_is_allowed(client: FlaskClient, path: str, body: Any, message: str) -> None:
    data = body if isinstance(body, str) else json.dumps(body)
    response = client.open(f"/api/v1{path}", method="POST" if body is not None else "GET", data=data, headers=BEARER)
    assert_error(response, 422, "invalid_parameter", message)


def test_chosen_fields_stand_in_the_order_of_all(client: FlaskClient) -> None:
    whole = search(client, q="radiator").get_json()
    chosen = [{name: hit[name] for name in ("path", "title", "score")} for hit in whole["results"]]
    for fields in ("score,path,title", ["title", "path,score"], " path, title ,score,path"):
        found = search(client, q="radiator", fields=fields)
        assert timeless(found.get_json()) == timeless(whole) | {"results": chosen}
        assert list(found.get_json()["results"][0]) == ["path", "title", "score"]
    compat = search(client, q="radiator", fields="section_path", compat="true").get_json()
    assert compat["results"][0] == {"section_path": whole["results"][0]["breadcrumb"]}
    both = post(client, {"queries": ["radiator", {"query": "radiator", "fields": ["path"]}], "fields": "title,path"}).get_json()
    assert [list(answer["results"][0]) for answer in both["answers"]] == [["path", "title"], ["path"]]
    assert search(client, q="radiator", fields="context_before").get_json()["results"][0] == {}


def test_fields_that_no_result_has_are_refused_with_those_it_has(client: FlaskClient) -> None:
    names = ", ".join(Hit.__struct_fields__)
    for fields in ("pth", "", "path,", "path;title"):
        assert_error(search(client, q="x", fields=fields), 422, "invalid_parameter", "fields has '", f"allowed are {names}")


def test_the_tag_of_an_answer_depends_on_its_fields_but_not_on_its_time(client: FlaskClient) -> None:
    replies = [search(client, q="radiator", fields=fields) for fields in ("path", "path", "title")]
    tags = [reply.headers["ETag"] for reply in replies]
    assert tags[0] == tags[1] != tags[2]
    assert len({reply.headers["X-Request-ID"] for reply in replies}) == 3


def test_excerpts_are_cut_and_marked(client: FlaskClient) -> None:
    found = search(client, q="bleeding a radiator that gurgles", n=1, crop=8, highlight="html").get_json()
    (hit,) = found["results"]
    assert "<mark>" in hit["excerpt_html"]
    assert hit["excerpt"].endswith(" …")
    assert len(hit["excerpt"]) < len(hit["snippet"]) / 2
    assert "best_sentence" not in hit
    found = search(client, q="bleeding a radiator that gurgles", n=1, highlight="ranges").get_json()
    (hit,) = found["results"]
    assert hit["excerpt"] == hit["snippet"][hit["prefix_length"] + hit["overlap_length"] :].strip()
    assert "gurgles" in [hit["excerpt"][start:end] for start, end in hit["excerpt_highlights"]]


def test_one_query_gets_the_answer_of_a_get(client: FlaskClient) -> None:
    found = post(client, {"query": "radiator", "limit": 2, "offset": 1, "explain": True}).get_json()
    assert timeless(found) == timeless(search(client, q="radiator", limit=2, offset=1, explain="true").get_json())


def test_queries_may_have_options_of_their_own(client: FlaskClient) -> None:
    own: list[dict[str, Any]] = [
        {"query": "frost", "limit": 1},
        {"query": "frost", "mode": "keyword", "filter": "tag:pipes", "n": None},
        {"query": "siren", "offset": 1, "limit": 1.0},
        {"query": "frost", "limit": 1, "tag": ["winter"]},
    ]
    shared = {"n": 3, "max_chunks_per_page": 1}
    body = post(client, {"queries": ["siren", *own], **shared}).get_json()
    expected = [{"query": "siren", **shared}, *({**shared, **each} for each in own)]
    expected = [{name: value for name, value in each.items() if value is not None} for each in expected]
    alone = [post(client, each | ({} if "n" in each else shared)).get_json() for each in expected]
    assert list(map(timeless, body["answers"])) == list(map(timeless, alone))
    assert [answer["query"] for answer in body["answers"]] == ["siren", "frost", "frost", "siren", "frost"]
    assert [answer["total"] for answer in body["answers"]][:2] == [3, 1]


def test_parameters_of_the_wiki_and_of_scripts_are_let_through(client: FlaskClient) -> None:
    foreign = "&".join(f"{name}=x" for name in IGNORED_PARAMETERS)
    for path in ("/semantic-search?q=radiator&", "/semantic-search/status?", "/pages?", "/related?path=home&"):
        assert client.get(f"/api/v1{path}{foreign}&_=2", headers=BEARER).status_code == 200
    assert client.post(f"/api/v1/semantic-search?{foreign}", json={"queries": ["x"]}, headers=BEARER).status_code == 200
    revision = client.get("/api/v1/pages/home?revision=x&_=1", headers=BEARER)
    assert_error(revision, 422, "invalid_parameter", "revision is 'x'")


def test_a_rebuild_is_started_once_and_told_of(client: FlaskClient) -> None:
    response = client.post("/api/v1/reindex", headers=BEARER)
    assert response.status_code == 202
    assert response.get_json()["status"] == "started"
    assert response.get_json()["estimate"]["texts"] == 0
    assert 0 < response.get_json()["estimate"]["disk_bytes"] < response.get_json()["estimate"]["free_bytes"]
    second = client.post("/api/v1/reindex", headers=BEARER)
    if second.status_code != 202:
        assert_error(second, 409, "reindex_running", "has been running since")

    def done() -> dict[str, Any] | None:
        status: dict[str, Any] = client.get("/api/v1/reindex/status", headers=BEARER).get_json()
        return status if status["state"] != "running" else None

    status = eventually(done)
    assert status["state"] == "done"
    assert (status["pages_done"], status["pages_total"]) == (5, 5)
    assert (status["chunks_done"], status["chunks_total"]) == (6, 6)
    assert status["started"] <= status["finished"]
    assert status["error"] is None
    assert status["seconds_left"] is None


def job_status(client: FlaskClient, job: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/api/v1/reindex/status", query_string={"job": job}, headers=BEARER).get_json()
    return found


def has_ended(client: FlaskClient, job: str) -> bool:
    return bool(job_status(client, job)["state"] != "running")


def test_each_reindex_has_a_job_that_ends(client: FlaskClient) -> None:
    eventually(lambda: client.get("/api/v1/reindex/status", headers=BEARER).get_json()["state"] != "running")
    pages = client.post("/api/v1/reindex", json={"pages": ["home", "garden"]}, headers=BEARER).get_json()
    assert (pages["status"], pages["pages"]) == ("started", ["home", "garden"])
    rebuild = client.post("/api/v1/reindex", headers=BEARER).get_json()
    assert rebuild["job"] != pages["job"]
    # The two pages may be copied before they are read again, and then count twice.
    for job, counts in ((pages["job"], {2}), (rebuild["job"], {5, 7})):
        eventually(partial(has_ended, client, job))
        done = job_status(client, job)
        assert (done["job"], done["state"], done["status"], done["error"]) == (job, "done", "complete", None)
        assert done["pages_done"] == done["pages_total"]
        assert done["pages_total"] in counts
        assert done["started"] <= done["finished"]
    last = client.get("/api/v1/reindex/status", headers=BEARER).get_json()
    assert last == job_status(client, rebuild["job"]), "without a job it is the last rebuild"


def test_a_job_that_nobody_started_is_unknown(client: FlaskClient) -> None:
    response = client.get("/api/v1/reindex/status?job=0123abcd", headers=BEARER)
    assert_error(response, 404, "job_unknown", "there is no job '0123abcd'", "until the index daemon ends")
    assert_error(client.get("/api/v1/reindex/status?job=", headers=BEARER), 422, "invalid_parameter", "job is ''")


@pytest.mark.parametrize(
    ("query", "body", "full"),
    [("?csrf_token=x&_=1763845000", None, False), ("?full=true", None, True), ("?full=true", {"full": False}, False)],
)
def test_a_rebuild_can_read_every_page(client: FlaskClient, query: str, body: dict[str, Any] | None, full: bool) -> None:
    def status() -> dict[str, Any]:
        found: dict[str, Any] = client.get("/api/v1/reindex/status", headers=BEARER).get_json()
        return found

    eventually(lambda: status()["state"] != "running")
    assert client.post(f"/api/v1/reindex{query}", json=body, headers=BEARER).status_code == 202
    eventually(lambda: status()["state"] != "running")
    done = status()
    assert (done["state"], done["copies"]) == ("done", not full)
    assert (done["status"], done["pages_indexed"], done["chunks_created"]) == ("complete", 5, 6), "as of the earlier plugin"
    assert (done["started_at"], done["completed_at"]) == (done["started"], done["finished"])
    assert done["error_message"] is None


@pytest.mark.parametrize(
    ("query", "body", "status", "code", "message"),
    [
        ("?full=maybe", None, 422, "invalid_parameter", "full is 'maybe'; allowed are true and false"),
        ("", '{"full": 7}', 422, "invalid_parameter", "full is 7; allowed are true and false"),
        ("", '{"full"', 400, "bad_request", 'the body is not JSON; send {"full": true}'),
        ("", '{"ful": true}', 422, "invalid_parameter", "unknown parameter 'ful'; did you mean 'full'?"),
        ("", "full=true", 400, "bad_request", 'the body is not JSON; send {"full": true}'),
        ("?pages=home", None, 422, "invalid_parameter", "unknown parameter 'pages' in the query string; allowed are full"),
    ],
)
def test_a_rebuild_that_is_not_understood_is_refused(
    client: FlaskClient, query: str, body: str | None, status: int, code: str, message: str
) -> None:
    kind = {"Content-Type": "application/json"} if body else {}
    response = client.post(f"/api/v1/reindex{query}", data=body, headers=BEARER | kind)
    assert_error(response, status, code, message)


def test_the_earlier_plugins_status_needs_no_key(client: FlaskClient) -> None:
    def whole() -> Any:
        response = client.get("/api/v1/chroma-status")
        assert response.status_code == 200
        return (body := response.get_json()) and body["document_count"] and not body["pending"] and body

    body = eventually(whole)
    assert body.keys() >= {"backend_type", "collection", "document_count", "status"}
    assert (body["collection"], body["pending"], body["outdated"]) == ("otterwiki", 0, 0)
    assert (body["status"], body["backend_type"]) == ("ok", "chroma")
    assert body["document_count"] == 6


@pytest.mark.parametrize(
    ("accept", "is_preferred"),
    [
        ("application/problem+json", True),
        ("application/json, application/problem+json", True),
        ("application/problem+json, */*;q=0.5", True),
        ("application/json, application/problem+json;q=0.5", False),
        ("application/problem+json;q=0", False),
        ("*/*", False),
        ("nonsense;;q", False),
    ],
)
def test_errors_are_problem_details_if_clients_prefer_them(client: FlaskClient, accept: str, *, is_preferred: bool) -> None:
    response = client.get("/api/v1/semantic-search/pages/home%20pag?view=1", headers=BEARER | {"Accept": accept})
    assert response.status_code == 404
    assert "Accept" in response.headers["Vary"]
    if not is_preferred:
        assert_error(response, 404, "page_unknown", "home pag")
        return
    assert response.content_type == "application/problem+json"
    details = dict(response.get_json())
    assert "home" in details.pop("pages")
    assert "home pag" in details.pop("detail")
    assert details.pop("request_id") == response.headers["X-Request-ID"]
    assert details == {
        "type": "urn:otterwiki-semantic:error:page_unknown",
        "title": "There is no such page",
        "status": 404,
        "instance": "/api/v1/semantic-search/pages/home%20pag",
        "code": "page_unknown",
    }


@pytest.mark.parametrize(("given", "is_valid"), [("trace-1.2:3/4", True), ("a" * 129, False), ("a b", False), ("", False)])
def test_a_request_has_an_id_which_a_client_may_choose(client: FlaskClient, given: str, *, is_valid: bool) -> None:
    headers = BEARER | {"X-Request-ID": given}
    replies = [client.get(f"/api/v1/semantic-search?q={query}", headers=headers) for query in ("radiator", "", "radiator")]
    ids = [reply.headers["X-Request-ID"] for reply in replies]
    assert ids == [given] * 3 if is_valid else len(set(ids)) == 3
    assert_error(replies[1], 422, "invalid_parameter", "q is empty")


def test_the_log_has_the_id_of_a_request_that_the_server_failed(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(IndexClient, "_connect", refuse := Mock(side_effect=PermissionError("no")))
    monkeypatch.setattr(IndexClient, "_idle_connection", lambda *_: None)
    reply = client.get("/api/v1/semantic-search?q=secret", headers=BEARER | {"X-Request-ID": "trace-7"})
    assert refuse.called
    assert_error(reply, 503, "index_unavailable")
    (line,) = [record.getMessage() for record in caplog.records if "trace-7" in record.getMessage()]
    assert "event=request_error code=index_unavailable request_id=trace-7 method=GET path=/api/v1/semantic-search" in line
    assert "secret" not in line


def test_problem_details_keep_the_headers_of_an_error(client: FlaskClient) -> None:
    refused = client.get("/api/v1/semantic-search/insight", headers={"Accept": "application/problem+json"})
    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
    wrong = client.delete("/api/v1/reindex", headers=BEARER | {"Accept": "application/problem+json"})
    assert (wrong.get_json()["status"], wrong.get_json()["code"], wrong.headers["Allow"]) == (405, "method_not_allowed", "POST")


def test_an_answer_is_json_whatever_is_accepted(client: FlaskClient) -> None:
    response = client.get("/api/v1/semantic-search?q=radiator", headers=BEARER | {"Accept": "application/problem+json"})
    assert (response.status_code, response.content_type) == (200, "application/json")


def test_an_unknown_route_is_an_error_in_json(client: FlaskClient) -> None:
    assert_error(client.get("/api/v1/semantic-search/nothing", headers=BEARER), 404, "not_found", "nothing")


def test_other_pages_under_the_prefix_are_the_wikis(client: FlaskClient) -> None:
    assert client.get("/api/v1/notes").content_type.startswith("text/html")


def test_a_head_request_is_answered(client: FlaskClient) -> None:
    response = client.head("/api/v1/semantic-search", query_string={"q": "x"}, headers=BEARER)
    assert response.status_code == 200
    assert response.data == b""


def test_an_index_that_cannot_answer_is_unavailable(app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from otterwiki_semantic.core.settings import Settings

    index = app.extensions["otterwiki_semantic"].index
    nowhere = Settings(index._settings.repository, index._settings.repository / "home.md" / "index")
    monkeypatch.setattr(index, "_settings", nowhere)
    monkeypatch.setattr(index._launcher, "_settings", nowhere)
    monkeypatch.setattr(index._launcher, "_report", None)
    response = search(client, q="x")
    assert_error(response, 503, "index_unavailable", "SEMANTIC_DATA_DIR")
    assert response.headers["Retry-After"] == "5"
    page = client.get("/-/semantic-search?q=x")
    assert (page.status_code, "SEMANTIC_DATA_DIR" in page.text) == (503, False), "a reader cannot change settings"
    assert "Search is not available right now" in page.text
    assert client.get("/api/v1/chroma-status").status_code == 503
    status = client.get("/api/v1/semantic-search/status", headers=BEARER)
    assert status.status_code == 503
    assert status.get_json()["error"]["code"] == "index_unavailable"
    assert status.get_json()["status"] == "unavailable"
    problem = status.get_json()["problems"][0]
    assert "SEMANTIC_DATA_DIR" in problem["message"]
    assert problem.keys() == {"message", "hint"}


def test_lists_and_suggestions_are_filtered_by_expressions(client: FlaskClient) -> None:
    pages = client.get("/api/v1/semantic-search/pages", query_string={"filter": "NOT path:house/"}, headers=BEARER).get_json()
    assert {page["path"] for page in pages["pages"]} == {"home", "garden", "machines/nas"}
    found = suggest(client, q="", filter="path:garden or path:home").get_json()
    assert {each["path"] for each in found["suggestions"]} == {"garden", "home"}


def test_a_filter_is_given_by_parameters(client: FlaskClient) -> None:
    for parameters, expected in (
        ({"tag": ["winter", "Pipes"]}, {"house/heating"}),
        ({"path": "house/"}, {"house/heating", "house/alarm"}),
        ({"updated_since": "2999-01-01T00:00:00+02:00"}, set()),
        ({"updated_before": "2020-01-31"}, set()),
        ({"filter": "path:house/ AND NOT tag:pipes"}, {"house/alarm"}),
        ({"filter": "category:house OR path:garden"}, {"house/heating", "garden"}),
        ({"filter": "NOT (path:house/ OR path:machines/)", "updated_since": "2020-01-31"}, {"home", "garden"}),
    ):
        body = search(client, q="the house", n=50, **parameters).get_json()
        assert {hit["path"] for hit in body["results"]} == expected
        assert body["confident"] is bool(expected & {"house/heating", "house/alarm", "home"})


def test_what_is_asked_for_besides_is_in_the_answer(client: FlaskClient) -> None:
    body = search(client, q="bleeding a radiator", n=1, context=1, facets="true", explain="1").get_json()
    assert body["facets"] == {"category": {"house": 1}, "tag": {"pipes": 1, "winter": 1}, "path": {"house/": 1}, "type": {}}
    (hit,) = body["results"]
    assert hit["context_before"].startswith("[Heating > Before the frost] ")
    assert "context_after" not in hit
    assert hit["explain"]["rule"] == "score"
    assert hit["explain"]["names"] > 10, "it is the section's heading"
    assert hit["explain"]["semantic"]["rank"] == hit["explain"]["keyword"]["rank"] == 1
    plain = search(client, q="bleeding a radiator", n=1).get_json()
    assert not {"facets", "degraded", "message"} & plain.keys()
    assert not {"context_before", "explain"} & plain["results"][0].keys()


def test_nothing_relevant_is_said(client: FlaskClient) -> None:
    body = search(client, q="pension contributions of employees").get_json()
    assert body["confident"] is False
    assert [hit["relevant"] for hit in body["results"]] == [False] * body["total"]


def related(client: FlaskClient, **parameters: Any) -> TestResponse:
    return client.get("/api/v1/related", query_string=parameters, headers=BEARER)


def test_related_pages(client: FlaskClient) -> None:
    body = related(client, path="/House/Heating.md", n=2).get_json()
    assert (body["path"], body["total"], len(body["results"])) == ("house/heating", 2, 2)
    page = body["results"][0]
    assert page["url"] == f"/{page['path']}"
    assert page["linked"] is False
    assert set(page["sections"][0]) == {"section", "anchor", "related_section", "related_anchor", "similarity"}
    assert page["similarity"] >= body["results"][1]["similarity"]


@pytest.mark.parametrize("path", ["no/such", "/"])
def test_no_page_is_related_to_one_that_is_not_there(client: FlaskClient, path: str) -> None:
    assert_error(related(client, path=path), 404, "page_unknown", repr(path))


def draft(client: FlaskClient, **body: Any) -> TestResponse:
    return client.post("/api/v1/related", json=body, headers=BEARER)


def test_links_of_a_draft(client: FlaskClient) -> None:
    text = "See the bleeding radiators. " + "Bleed each radiator in autumn until water comes, then check the pressure. " * 3
    body = draft(client, text=text, path="/New/Page.md", cursor=3, n=1).get_json()
    assert set(body) == {"mentions", "pages", "duplicates", "index"}
    assert len(body["pages"]) == 1
    page = body["pages"][0]
    assert (page["url"], page["link"]) == (f"/{page['path']}", f"[[{page['title']}|{page['path']}]]")


def test_drafts_are_for_readers(client: FlaskClient) -> None:
    assert client.post("/api/v1/related", json={"text": "x"}, headers={"Authorization": "Bearer wrong"}).status_code == 401


def suggest(client: FlaskClient, **parameters: Any) -> TestResponse:
    return client.get("/api/v1/semantic-search/suggest", query_string=parameters, headers=BEARER)


def test_a_suggestion_has_every_field(client: FlaskClient) -> None:
    response = suggest(client, q=" radiator ble ")
    body = response.get_json()
    (section,) = body.pop("suggestions")
    commit = body["index"]["head"]
    assert body == {"query": "radiator ble", "index": {"commit": commit, "head": commit, "pending_pages": 0}, "tags": []}
    assert section.pop("updated").endswith("+00:00")
    assert section == {
        "kind": "section",
        "path": "house/heating",
        "title": "Heating",
        "section": "Bleeding a radiator",
        "section_path": ["Heating", "Bleeding a radiator"],
        "anchor": "bleeding-a-radiator",
        "ranges": [[0, 3], [11, 19]],
        "url": "/house/heating#bleeding-a-radiator",
    }


def test_without_a_query_pages_are_suggested(client: FlaskClient) -> None:
    for parameters in ({}, {"q": ""}, {"q": " "}):
        body = suggest(client, n=50, **parameters).get_json()
        assert body["query"] == ""
        assert {(each["kind"], each["section"]) for each in body["suggestions"]} == {("page", "")}
        assert len(body["suggestions"]) == 5


def test_the_map(client: FlaskClient) -> None:
    def made() -> Any:
        body = client.get("/api/v1/semantic-search/map", headers=BEARER).get_json()
        return body if body is not None and body["state"] == "ready" else None

    body = eventually(made)
    assert set(body) == {"state", "made", "points", "total", "index"}
    assert body["total"] == len(body["points"]) == 5
    heating = next(point for point in body["points"] if point["path"] == "house/heating")
    assert (0 <= heating.pop("x") <= 1, 0 <= heating.pop("y") <= 1) == (True, True)
    assert heating == {
        "path": "house/heating",
        "title": "Heating",
        "name": "heating",
        "folder": "house",
        "category": "house",
        "is_new": False,
        "url": "/house/heating",
    }


def test_addresses_of_many_pages_are_those_of_the_wiki(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(app.config, "RETAIN_PAGE_NAME_CASE", True)
    odd = [chr(number) for number in range(32, 0x250)]
    paths = [
        "house/heating",
        "a b/c%20d/é?x=1#y",
        "10:30, (a) & 'b' \"c\" <d>;e=f+g@h!$*",
        "日本/🦦",
        "x" * 300,
        *(f"a{one}b" for one in odd),
    ]
    for root in ("", "/wiki"):
        with app.test_request_context("/", environ_overrides={"SCRIPT_NAME": root}):
            urls = page_urls()
            assert [urls.of(path) for path in paths] == [url_for("view", path=path) for path in paths]
            anchors = [url_for("view", path="x", _anchor=anchor) for anchor in paths]
            assert [urls.of("x", anchor) for anchor in paths] == anchors


def test_a_search_can_wait(client: FlaskClient) -> None:
    for parameters in ({"wait": "true"}, {"wait": "1", "wait_seconds": "0.5"}, {"wait": "false", "wait_seconds": 10}):
        body = search(client, q="radiator", **parameters).get_json()
        assert body["index"]["commit"] == body["index"]["head"]
    for bad in ({"wait": "perhaps"}, {"wait": "true", "wait_seconds": "11"}, {"wait_seconds": "-1"}, {"wait_seconds": "nan"}):
        assert_error(search(client, q="radiator", **bad), 422, "invalid_parameter", next(reversed(bad)))


@pytest.mark.parametrize("has_it", [False, True])
def test_a_search_asks_the_daemon_once(client: FlaskClient, monkeypatch: pytest.MonkeyPatch, has_it: bool) -> None:
    path = "/api/v1/semantic-search?q=radiator"
    tag = eventually(lambda: client.get(path, headers=BEARER).headers.get("ETag"))
    exchange, calls = IndexClient._exchange, list[bytes]()

    def counted(self: IndexClient, request: bytes, deadline: float) -> bytes:
        calls.append(request)
        return exchange(self, request, deadline)

    monkeypatch.setattr(IndexClient, "_exchange", counted)
    response = client.get(path, headers=BEARER | {"If-None-Match": str(tag) if has_it else '"another"'})
    assert response.status_code == (304 if has_it else 200)
    assert response.headers["ETag"] == tag
    assert len(calls) == 1
