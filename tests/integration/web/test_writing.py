"""Pages that programs write: by the wiki's rules, in somebody's name, and one after the other."""

from __future__ import annotations

import fcntl
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.support.fork_server import python
from tests.support.live_wiki import LiveWiki, Reply, commit, git, head_of, make_repository

_GARDEN = """\
# Garden

## Tomatoes

Plant them after the middle of May.

### Water

Never wet the leaves.

## Beans

They climb.
"""
PAGES: dict[str, str | bytes] = {
    "home.md": "# Home\n\nAbout a house.\n",
    "garden.md": _GARDEN,
    "house/heating.md": "# Heating\n\nThe boiler in the cellar warms the radiators.\n",
}
SETTINGS: dict[str, Any] = {
    "SEMANTIC_ALLOW_WRITE": "true",
    "SEMANTIC_WRITE_AS": "admin@example.org",
    "SEMANTIC_EXCLUDE": "secret/**",
}
ROUTE = "/api/v1/semantic-search/pages/"


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("writing")
    repository = make_repository(place / "repository", PAGES)
    with LiveWiki(repository, place / "index", **SETTINGS) as live:
        live.log_in()
        live.wait_until_indexed()
        yield live


def put(wiki: LiveWiki, path: str, **body: Any) -> Reply:
    return sent(wiki, "PUT", path, body)


def patch(wiki: LiveWiki, path: str, **body: Any) -> Reply:
    return sent(wiki, "PATCH", path, body)


def sent(wiki: LiveWiki, method: str, path: str, body: dict[str, Any], key: str | None = "test-key") -> Reply:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    return wiki.request(method, ROUTE + quote(path), json.dumps(body).encode(), headers)


def read(wiki: LiveWiki, path: str) -> dict[str, Any]:
    reply = wiki.api("GET", f"/semantic-search/pages/{path}")
    assert reply.status == 200, reply.text
    page: dict[str, Any] = reply.json
    return page


def error_of(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.json["error"]["code"]


def test_a_page_is_created_in_the_name_of_the_account_and_found_at_once(wiki: LiveWiki) -> None:
    reply = put(
        wiki, "garden/pumpkins", text="# Pumpkins\r\n\r\nThey are planted in May, like tomatoes.", message="Tell of pumpkins"
    )
    assert reply.status == 200, reply.text
    written = reply.json
    assert (written["path"], written["created"], written["changed"], written["indexed"]) == (
        "garden/pumpkins",
        True,
        True,
        True,
    )
    assert written["revision"] == head_of(wiki.repository)
    assert "garden" in [page["path"] for page in written["related"]]
    assert written["url"].endswith("/garden/pumpkins")
    assert "Set-Cookie" not in reply.headers
    assert git(wiki.repository, "log", "-1", "--format=%an|%ae|%s") == "Admin|admin@example.org|Tell of pumpkins"
    assert git(wiki.repository, "show", "HEAD:garden/pumpkins.md") == "# Pumpkins\n\nThey are planted in May, like tomatoes."
    assert wiki.search("pumpkins", n=1)[0]["path"] == "garden/pumpkins"
    assert error_of(put(wiki, "garden/pumpkins", text="# Other\n")) == (409, "page_exists")


def test_a_page_is_replaced_only_as_it_was_read(wiki: LiveWiki) -> None:
    put(wiki, "notes/replaced", text="# Replaced\n\nfirst line\n")
    first = read(wiki, "notes/replaced")["revision"]
    assert put(wiki, "notes/replaced", text="# Replaced\n\nsecond line\n", revision=first).json["changed"]
    reply = put(wiki, "notes/replaced", text="# Replaced\n\nthird line\n", revision=first)
    assert error_of(reply) == (409, "page_changed")
    assert "-first line\n+second line" in reply.json["diff"]
    assert reply.json["revision"] == read(wiki, "notes/replaced")["revision"]
    assert "second line" in read(wiki, "notes/replaced")["content"]
    assert error_of(put(wiki, "notes/none", text="x", revision=first)) == (404, "page_unknown")
    assert error_of(put(wiki, "notes/replaced", text="x", revision="abcdef12")) == (404, "revision_unknown")


def test_a_text_is_replaced_where_it_stands_once(wiki: LiveWiki) -> None:
    put(wiki, "notes/edited", text="# Edited\n\none two one\n")
    revision = read(wiki, "notes/edited")["revision"]
    for old, trouble in (("three", "is not in the page"), ("one", "occurs 2 times"), ("", "is not in the page")):
        reply = patch(wiki, "notes/edited", revision=revision, old=old, new="x")
        assert reply.status == 422
        assert trouble in reply.json["error"]["message"]
    assert patch(wiki, "notes/edited", revision=revision[:10], old="two", new="2").json["changed"]
    assert read(wiki, "notes/edited")["content"] == "# Edited\n\none 2 one\n"
    assert error_of(patch(wiki, "notes/edited", revision=revision, old="2", new="3")) == (409, "page_changed")


def test_a_text_is_appended_to_a_section_with_all_its_subsections(wiki: LiveWiki) -> None:
    assert patch(wiki, "garden", append="Tie them up.", section="Tomatoes").status == 200
    assert patch(wiki, "garden", append="In the evening.", section="Tomatoes > Water").status == 200
    assert patch(wiki, "garden", append="## Salad\n\nSow it often.\n").status == 200
    assert read(wiki, "garden")["content"] == (
        "# Garden\n\n## Tomatoes\n\nPlant them after the middle of May.\n\n### Water\n\nNever wet the leaves.\n\n"
        "Tie them up.\n\nIn the evening.\n\n## Beans\n\nThey climb.\n\n## Salad\n\nSow it often.\n"
    )
    assert error_of(patch(wiki, "garden", append="x", section="Roses")) == (404, "section_unknown")


def test_an_edit_changes_nothing_else(wiki: LiveWiki) -> None:
    revision = commit(wiki.repository, {"notes/windows.md": "    code\r\n\r\none\r\ntwo\r\n\x1b[0m\r\naaa\r\n"})
    assert patch(wiki, "notes/windows", revision=revision, old="aa", new="b").status == 422, "it stands there twice"
    assert patch(wiki, "notes/windows", revision=revision, old="one\ntwo", new="three").status == 200
    assert read(wiki, "notes/windows")["content"] == "    code\n\nthree\n\x1b[0m\naaa\n"


def test_no_page_grows_beyond_what_is_indexed(wiki: LiveWiki) -> None:
    commit(
        wiki.repository,
        {
            "notes/large.md": "# Large\n" + "word" + " " * 1_990_000 + "word",
            "notes/larger.md": "# Larger\n" + "word" + " " * 2_010_000 + "word",
        },
    )
    assert patch(wiki, "notes/large", append="word " * 2_500).status == 422
    assert patch(wiki, "notes/large", append="word").status == 200
    assert patch(wiki, "notes/larger", revision=head_of(wiki.repository), old="# Larger", new="# L").status == 200


@pytest.mark.parametrize(
    "path",
    [
        "../evil",
        "a/../../evil",
        "a/./b",
        ".git/config",
        "a/.hidden",
        "-/admin",
        "a\\b",
        "a\nb",
        "a\x00b",
        " a",
        "x" * 300,
        "a//b",
        "q?uery",
    ],
)
def test_no_file_is_written_elsewhere(wiki: LiveWiki, path: str) -> None:
    before = head_of(wiki.repository)
    assert put(wiki, path, text="# Evil\n").status in {404, 405, 422, 308}
    assert head_of(wiki.repository) == before


@pytest.mark.parametrize(
    ("path", "reason"),
    [(":(glob)**", "begin with a colon"), (":(exclude)x", "begin with a colon"), ("linked/page", "in submodule")],
)
def test_a_path_that_git_takes_for_something_else_is_refused_with_the_reason(wiki: LiveWiki, path: str, reason: str) -> None:
    if not (wiki.repository / "linked").exists():
        other = make_repository(wiki.data_dir.parent / "linked", {"inside.md": "# Inside\n"})
        git(wiki.repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "linked")
        commit(wiki.repository, {})
    before = head_of(wiki.repository)
    for reply in (put(wiki, path, text="# Evil\n"), patch(wiki, path, append="x")):
        assert reply.status in {404, 422}
    refused = put(wiki, path, text="# Evil\n")
    assert error_of(refused) == (422, "invalid_parameter")
    assert reason in refused.json["error"]["message"]
    assert (head_of(wiki.repository), git(wiki.repository, "status", "--porcelain")) == (before, "")


def test_a_link_in_the_repository_leads_nowhere(wiki: LiveWiki, tmp_path: Path) -> None:
    target = tmp_path / "target.md"
    target.write_text("outside")
    (wiki.repository / "link.md").symlink_to(target)
    (wiki.repository / "folder").symlink_to(tmp_path)
    commit(wiki.repository, {})
    for path in ("link", "folder/page"):
        assert put(wiki, path, text="# Evil\n").status in {403, 409, 422}
    assert target.read_text() == "outside"
    assert not (tmp_path / "page.md").exists()


def test_a_change_that_nobody_committed_is_not_overwritten(wiki: LiveWiki) -> None:
    revision = put(wiki, "notes/uncommitted", text="# One\n").json["revision"]
    (wiki.repository / "notes/uncommitted.md").write_text("# By hand\n")
    assert error_of(put(wiki, "notes/uncommitted", text="# Two\n", revision=revision)) == (503, "write_failed")
    assert (wiki.repository / "notes/uncommitted.md").read_text() == "# By hand\n"
    git(wiki.repository, "checkout", "--", "notes/uncommitted.md")


def test_what_a_person_has_not_saved_yet_stays(wiki: LiveWiki) -> None:
    put(wiki, "notes/drafted", text="# Drafted\n\nsaved\n")
    form = {"csrf_token": wiki.csrf_token("/-/settings"), "content": "# Drafted\n\nunsaved words", "cursor_line": "0"}
    assert wiki.request("POST", "/notes/drafted/draft", urlencode(form).encode()).json == {"status": "draft saved"}
    assert patch(wiki, "notes/drafted", append="by a program").status == 200
    assert "unsaved words" in wiki.get("/notes/drafted/edit").text


def test_the_wiki_offers_a_message(wiki: LiveWiki) -> None:
    put(wiki, "notes/silent", text="# Silent\n")
    assert git(wiki.repository, "log", "-1", "--format=%s")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": " \n"},
        {"text": "a\x00b"},
        {"text": "bell\x07"},
        {"text": "\x1b[31mred"},
        {"text": "half \ud800"},
        {"text": "x" * 100_001},
        {"text": 1},
        {"text": "x", "message": "two\nlines"},
        {"text": "x", "author": "Eve"},
    ],
)
def test_bad_texts_are_refused(wiki: LiveWiki, body: dict[str, Any]) -> None:
    before = head_of(wiki.repository)
    assert put(wiki, "notes/bad", **body).status == 422
    assert head_of(wiki.repository) == before


@pytest.mark.parametrize(
    "body", [{}, {"old": "a", "new": "b"}, {"append": "a", "old": "b"}, {"section": "a"}, {"append": " "}, {"append": "\x1b"}]
)
def test_bad_changes_are_refused(wiki: LiveWiki, body: dict[str, Any]) -> None:
    assert patch(wiki, "garden", **body).status == 422


def test_a_name_is_saved_in_lower_case_as_the_wiki_does(wiki: LiveWiki) -> None:
    assert put(wiki, "Notes/Upper", text="# Upper\n").json["path"] == "notes/upper"


def test_excluded_pages_are_not_touched(wiki: LiveWiki) -> None:
    commit(wiki.repository, {"secret/plan.md": "# Plan\n"})
    assert error_of(put(wiki, "secret/plan", text="# Other\n")) == (403, "forbidden")
    assert error_of(patch(wiki, "secret/plan", append="x")) == (403, "forbidden")


_RACER = """
import sys, urllib.error, urllib.request
url, body = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
request = urllib.request.Request(url, body.encode(), {"Authorization": "Bearer test-key"}, method="PATCH")
try:
    print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


def test_only_one_of_many_writers_to_two_processes_of_the_wiki_wins(wiki: LiveWiki) -> None:
    with LiveWiki(wiki.repository, wiki.data_dir, **SETTINGS) as other:
        revision = put(wiki, "notes/shared", text="# Shared\n\nstart\n").json["revision"]
        racers = []
        for number in range(6):
            url = f"{(wiki, other)[number % 2].url}{ROUTE}notes/shared"
            body = json.dumps({"revision": revision, "old": "start", "new": f"writer {number}"})
            command = [python(), "-c", _RACER, url, body]
            racers.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("\n")
            racer.stdin.flush()
        statuses = sorted(racer.communicate()[0].strip() for racer in racers)
    assert statuses == ["200", *["409"] * 5]
    assert git(wiki.repository, "rev-list", "--count", f"{revision}..HEAD") == "1"
    assert git(wiki.repository, "status", "--porcelain") == ""


def test_a_writer_that_takes_long_does_not_hold_the_others_up_for_ever(wiki: LiveWiki) -> None:
    with (wiki.data_dir / "writing.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        reply = put(wiki, "notes/late", text="# Late\n")
        assert error_of(reply) == (503, "write_failed")
        assert "still writing" in reply.text
    assert put(wiki, "notes/late", text="# Late\n").status == 200


def test_who_may_write_but_not_read_is_told_nothing(wiki: LiveWiki) -> None:
    """A proxy gives each permission separately; what a change answers shows what others wrote, and pages about the same."""
    body = json.dumps({"text": "# Boiler\n\nThe boiler warms the radiators.\n"}).encode()
    with LiveWiki(wiki.repository, wiki.data_dir, **SETTINGS | {"AUTH_METHOD": "PROXY_HEADER"}) as other:
        for roles, status in (("WRITE", 403), ("READ,WRITE", 200)):
            headers = {
                "x-otterwiki-name": "<Proxied> by a proxy.",
                "x-otterwiki-email": "proxied@example.org",
                "x-otterwiki-permissions": roles,
            }
            token = re.search('name="csrf-token" content="([^"]+)"', other.request("GET", "/-/about", headers=headers).text)
            assert token
            headers |= {"X-CSRFToken": token[1], "Content-Type": "application/json"}
            created = other.request("PUT", ROUTE + "notes/boiler", body, headers)
            assert (created.status, "heating" in created.text) == (status, status == 200)
            changing = json.dumps({"old": "nothing", "new": "x", "revision": head_of(wiki.repository)}).encode()
            assert other.request("PATCH", ROUTE + "garden", changing, headers).status == (403 if status == 403 else 422)
        refused = other.request("PUT", ROUTE + "notes/other", body, {"Authorization": "Bearer test-key"})
        assert "no accounts of its own" in refused.text
    assert git(wiki.repository, "log", "-1", "--format=%an <%ae>") == "Proxied by a proxy <proxied@example.org>"


def put_anonymously(wiki: LiveWiki) -> Reply:
    headers = {"X-CSRFToken": wiki.csrf_token("/-/login"), "Content-Type": "application/json"}
    return wiki.request("PUT", f"{ROUTE}notes/anonymous", b'{"text": "# Anonymous"}', headers)


def test_anonymous_people_write_where_the_wiki_lets_them(wiki: LiveWiki) -> None:
    settings = {"WRITE_ACCESS": "ANONYMOUS", "READ_ACCESS": "ANONYMOUS"}
    with LiveWiki(wiki.repository, wiki.data_dir, **SETTINGS | settings) as other:
        reply = put_anonymously(other)
        assert reply.status == 200, reply.text
        forged = other.request("PUT", f"{ROUTE}notes/forged", b'{"text": "# Forged"}', {"Content-Type": "application/json"})
        assert error_of(forged) == (403, "csrf_failed")
    assert git(wiki.repository, "log", "-1", "--format=%an <%ae>") == "Anonymous <>"


def test_an_account_without_the_permission_writes_nothing(wiki: LiveWiki) -> None:
    before = head_of(wiki.repository)
    settings = {
        "WRITE_ACCESS": "ADMIN",
        "READ_ACCESS": "ANONYMOUS",
        "AUTO_APPROVAL": "True",
        "EMAIL_NEEDS_CONFIRMATION": "False",
        "SEMANTIC_WRITE_AS": "reader@example.org",
    }
    with LiveWiki(wiki.repository, wiki.data_dir, **SETTINGS | settings) as other:
        assert put_anonymously(other).status == 401
        other.log_in("reader")
        headers = {"X-CSRFToken": other.csrf_token("/-/settings"), "Content-Type": "application/json"}
        reply = other.request("PUT", f"{ROUTE}notes/reader", b'{"text": "# Reader"}', headers)
        assert error_of(reply) == (403, "forbidden")
        reply = put(other, "notes/reader", text="# Reader")
        assert error_of(reply) == (403, "forbidden")
        assert "has no WRITE permission" in reply.text
    assert head_of(wiki.repository) == before


def test_a_session_needs_its_token_and_writes_in_its_own_name(wiki: LiveWiki) -> None:
    body = json.dumps({"text": "# Mine\n"}).encode()
    assert error_of(wiki.request("PUT", f"{ROUTE}notes/mine", body)) == (403, "csrf_failed")
    token = {"X-CSRFToken": wiki.csrf_token("/-/settings"), "Content-Type": "application/json"}
    assert wiki.request("PUT", f"{ROUTE}notes/mine", body, token).status == 200


def test_strangers_and_wrong_keys_write_nothing(wiki: LiveWiki) -> None:
    before = head_of(wiki.repository)
    assert error_of(sent(wiki, "PUT", "notes/strange", {"text": "x"}, key="wrong")) == (401, "wrong_key")
    assert head_of(wiki.repository) == before


def test_a_key_without_an_account_writes_nothing(wiki: LiveWiki) -> None:
    before = head_of(wiki.repository)
    with LiveWiki(wiki.repository, wiki.data_dir, **SETTINGS | {"SEMANTIC_WRITE_AS": ""}) as other:
        assert error_of(put(other, "notes/new", text="# New\n")) == (403, "forbidden")
    assert head_of(wiki.repository) == before


@pytest.mark.parametrize(
    ("path", "text"), [("secret/new", "# New\n"), ("hidden", "---\nsearch: false\n---\n# New\n")], ids=["glob", "front matter"]
)
def test_a_page_that_would_be_excluded_is_not_written(wiki: LiveWiki, path: str, text: str) -> None:
    before = head_of(wiki.repository)
    reply = put(wiki, path, text=text)
    assert (reply.status, reply.json["error"]["code"]) == (403, "forbidden")
    assert head_of(wiki.repository) == before
    assert not (wiki.repository / f"{path}.md").exists()


def test_a_page_is_not_taken_out_of_searches(wiki: LiveWiki) -> None:
    revision = put(wiki, "to-stay", text="# To stay\n\ntext\n").json["revision"]
    reply = put(wiki, "to-stay", text="---\nsearch: false\n---\n# To stay\n", revision=revision)
    assert reply.status == 403
    assert "search: false" not in read(wiki, "to-stay")["content"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("ignored/page", "git ignores"),
        ("a:b", "a letter and a colon"),
        ("garden/history", "an address of the wiki itself"),
        ("robots.txt", "an address of the wiki itself"),
    ],
)
def test_what_git_or_the_wiki_does_not_take_is_refused(wiki: LiveWiki, path: str, said: str) -> None:
    exclude = wiki.repository / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("ignored/\n")
    reply = put(wiki, path, text="# New\n")
    assert reply.status == 422
    assert said in reply.text
    assert not (wiki.repository / f"{path}.md").exists()


def test_the_same_page_sent_again_changes_nothing(wiki: LiveWiki) -> None:
    first = put(wiki, "twice", text="# Twice\n\nsent\n")
    head = head_of(wiki.repository)
    again = put(wiki, "twice", text="# Twice\n\nsent\n")
    assert (again.status, again.json["created"], again.json["changed"]) == (200, False, False)
    assert again.json["revision"] == first.json["revision"]
    assert head_of(wiki.repository) == head


def test_a_file_that_the_wiki_would_save_elsewhere_is_not_forked(wiki: LiveWiki) -> None:
    commit(wiki.repository, {"Upper.md": "# Upper\n\nold text\n"})
    reply = patch(wiki, "Upper", append="more")
    assert reply.status == 503
    assert "rename the page" in reply.text
    assert not (wiki.repository / "upper.md").exists()


def test_a_save_that_fails_leaves_the_page_as_it_was(wiki: LiveWiki) -> None:
    revision = put(wiki, "failing", text="# Failing\n\nas it was\n").json["revision"]
    hook = wiki.repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    try:
        replies = [
            put(wiki, "failing", text="# Failing\n\nother\n", revision=revision),
            put(wiki, "never there", text="# Never there\n"),
        ]
    finally:
        hook.unlink()
    assert [reply.json["error"]["code"] for reply in replies] == ["write_failed", "write_failed"]
    assert (wiki.repository / "failing.md").read_text() == "# Failing\n\nas it was\n"
    assert not (wiki.repository / "never there.md").exists()
    assert git(wiki.repository, "status", "--porcelain") == ""
    assert put(wiki, "failing", text="# Failing\n\nother\n", revision=revision).status == 200


@pytest.mark.parametrize("left", ["# Left\n\nnew\n", ""], ids=["written", "emptied"])
@pytest.mark.parametrize("is_staged", [False, True])
def test_a_save_that_was_interrupted_can_be_sent_again(wiki: LiveWiki, left: str, *, is_staged: bool) -> None:
    name = f"left {bool(left)} {is_staged}".lower()
    revision = put(wiki, name, text="# Left\n\nold\n").json["revision"]
    (wiki.repository / f"{name}.md").write_text(left)
    if is_staged:
        git(wiki.repository, "add", f"{name}.md")
    reply = put(wiki, name, text="# Left\n\nnew\n", revision=revision)
    assert (reply.status, reply.json.get("changed")) == (200, True), reply.text
    assert git(wiki.repository, "show", f"HEAD:{name}.md").endswith("new")


def test_programs_write_while_people_read(wiki: LiveWiki) -> None:
    is_over = threading.Event()

    def browse() -> None:
        while not is_over.is_set():
            for address in ("/garden/history", "/garden/blame"):
                wiki.get(address)

    readers = [threading.Thread(target=browse, daemon=True) for _ in range(2)]
    for reader in readers:
        reader.start()
    replies = [put(wiki, f"busy/{number}", text=f"# Busy {number}\n").status for number in range(3)]
    is_over.set()
    for reader in readers:
        reader.join(30)
    assert replies == [200] * 3
    assert not any(reader.is_alive() for reader in readers)


def delete(wiki: LiveWiki, path: str, **parameters: str) -> Reply:
    return wiki.api("DELETE", f"/semantic-search/pages/{path}", **parameters)


def test_a_page_is_deleted_at_the_revision_that_was_read(wiki: LiveWiki) -> None:
    put(wiki, "shed", text="# Shed\n\nWhere the scythe hangs.\n")
    put(wiki, "shed/roof", text="# Roof\n\nTarred.\n")
    earlier = read(wiki, "shed")["revision"]
    patch(wiki, "shed", append="And the rake.")
    assert error_of(delete(wiki, "shed", revision=earlier)) == (409, "page_changed")
    reply = delete(wiki, "shed", revision=read(wiki, "shed")["revision"], message="Torn down")
    assert reply.status == 200, reply.text
    assert (reply.json["path"], reply.json["indexed"], reply.json["revision"]) == ("shed", True, head_of(wiki.repository))
    assert git(wiki.repository, "log", "-1", "--format=%s").strip() == "Torn down"
    assert git(wiki.repository, "show", "--name-only", "--format=", "HEAD").split() == ["shed.md"]
    assert error_of(wiki.api("GET", "/semantic-search/pages/shed")) == (404, "page_unknown")
    assert read(wiki, "shed/roof")["title"] == "Roof"
    assert "shed" not in [
        hit["path"] for hit in wiki.api("GET", "/semantic-search", q="where the scythe hangs").json["results"]
    ]


def test_a_page_is_not_deleted_without_its_revision_or_over_changes_that_are_not_committed(wiki: LiveWiki) -> None:
    assert error_of(delete(wiki, "garden")) == (422, "invalid_parameter")
    assert error_of(delete(wiki, "nowhere", revision="abcdef12")) == (404, "page_unknown")
    file = wiki.repository / "garden.md"
    text = file.read_text()
    file.write_text(text + "\nnot committed\n")
    try:
        assert error_of(delete(wiki, "garden", revision=read(wiki, "garden")["revision"]))[1] == "write_failed"
        assert file.read_text().endswith("not committed\n")
    finally:
        file.write_text(text)
