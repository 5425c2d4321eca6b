"""What an agent spends on a question: calls and tokens until it has read what answers, over the official MCP client.

The agent is a script: it searches, and if the judged words are not in the answer, reads the sections that it names, first
those of which it has seen nothing, then the rest of those of the passages, the best first. Questions, sections and passages are
those of judged wikis (`--wikis`), each a directory with `pages` and `queries.json`.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import anyio
from mcp import Client
from mcp_types import CallToolResult

from benchmarks.support.local import opened, wait_until_settled
from benchmarks.support.options import Options
from benchmarks.support.report import Figure, at_least, at_most, missing, say
from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.markdown import parse_markdown
from otterwiki_semantic.core.token_count import count_tokens
from otterwiki_semantic.mcp.local_backend import LocalBackend
from otterwiki_semantic.mcp.server import make_server

_QUESTIONS = 40
_MAX_CALLS = 5
_JUDGED_WORDS = 15
"""Words from the beginning of a judged section that have to be read."""
_WANTED_CALLS, _WANTED_TOKENS, _WANTED_SHARE = 2, 1_500, 0.9
_WANTED_TOOL_LIST = 1_800
_PASSAGE = re.compile(r'^(<wiki-text-\w+ )?(path="[^"]*"(?: \w+="[^"]*")*)>?$', re.MULTILINE)
"""The beginning of a passage, or the place of one that is left out."""
_NO_WORDS = re.compile(r"^\s*(?:```|~~~).*$|\]\([^)]*\)|<[^>]*>", re.MULTILINE)
"""Fences, addresses and tags."""


@dataclass(frozen=True, slots=True)
class _Question:
    text: str
    wanted: tuple[str, ...]
    """What has to be read, as words."""
    excluded: frozenset[str]
    """Pages that the question was taken from: the text of a link on them."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    answered: bool
    calls: int
    tokens: int

    @property
    def is_quick(self) -> bool:
        return self.answered and self.calls <= _WANTED_CALLS and self.tokens <= _WANTED_TOKENS


def measure(options: Options) -> list[Figure]:
    """Return the share of questions answered, and calls and tokens a question."""
    if options.wikis is None:
        return [missing("questions answered by an agent", "", "name the directory of judged wikis: --wikis DIR")]
    wikis = [path for path in sorted(options.wikis.iterdir()) if _questions(path)]
    asked = [
        list(_spread(_questions(wiki), _QUESTIONS // len(wikis) + (at < _QUESTIONS % len(wikis))))
        for at, wiki in enumerate(wikis)
    ]
    outcomes, list_tokens = [], 0
    for wiki, questions in zip(wikis, asked, strict=True):
        say(f"{len(questions)} questions to {wiki.name}")
        found, list_tokens = _ask_wiki(wiki, questions)
        outcomes += found
    return _figures(outcomes, list_tokens)


def _figures(outcomes: Sequence[_Outcome], list_tokens: int) -> list[Figure]:
    note = f"{len(outcomes)} questions"
    quick = mean(each.is_quick for each in outcomes)
    return [
        at_most("the list of tools", list_tokens, "tokens", _WANTED_TOOL_LIST),
        at_least(f"answered within {_WANTED_CALLS} calls and {_WANTED_TOKENS:,} tokens", quick, "", _WANTED_SHARE, note),
        Figure("answered by the search alone", mean(each.answered and each.calls == 1 for each in outcomes), ""),
        Figure(f"answered within {_MAX_CALLS} calls", mean(each.answered for each in outcomes), ""),
        Figure("calls a question", mean(each.calls for each in outcomes), ""),
        Figure("tokens a question", mean(each.tokens for each in outcomes), ""),
    ]


def _ask_wiki(wiki: Path, questions: Sequence[_Question]) -> tuple[list[_Outcome], int]:
    """Return what becomes of the questions, and the tokens of the list of tools."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        shutil.copytree(wiki / "pages", place / "repository")
        for path in set().union(*(question.excluded for question in questions)):
            (place / "repository" / f"{path}.md").unlink(missing_ok=True)
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "pages"]):
            subprocess.run(
                ["git", "-c", "user.name=b", "-c", "user.email=b@example.org", *command], cwd=place / "repository", check=True
            )
        with opened(place / "repository", place / "index") as index:
            wait_until_settled(index)
            backend = LocalBackend(index, Repository(place / "repository"))  # type: ignore[arg-type]  # it has the same methods
            return anyio.run(partial(_ask_all, backend, questions))


async def _ask_all(backend: LocalBackend, questions: Sequence[_Question]) -> tuple[list[_Outcome], int]:
    server = make_server(
        backend, allow_reindex=False, has_aliases=False, has_connectors=False, is_structured=False, can_answer=False
    )
    async with Client(server) as client:
        tools = await client.list_tools()
        listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools.tools]
        outcomes = [await _ask(client, each) for each in questions]
    return outcomes, count_tokens(json.dumps(listed, separators=(",", ":"), ensure_ascii=False))


async def _ask(client: Client, question: _Question) -> _Outcome:
    result = await client.call_tool("semantic_search", {"query": question.text})
    read, tokens, calls = _words(_text(result)), _cost(result), 1
    passages = _passages(_text(result))
    while not all(wanted in read for wanted in question.wanted) and passages and calls < _MAX_CALLS:
        result = await client.call_tool("read_note", passages.pop(0))
        read, tokens, calls = f"{read} {_words(_text(result))}", tokens + _cost(result), calls + 1
    return _Outcome(all(wanted in read for wanted in question.wanted), calls, tokens)


def _passages(text: str) -> list[dict[str, Any]]:
    """Return the arguments to read the sections that an answer names, each section once, those without a passage first."""
    found: dict[str, dict[str, Any]] = {}
    for match in sorted(_PASSAGE.finditer(text), key=lambda match: bool(match[1])):
        values = {name: html.unescape(value) for name, value in re.findall(r'(\w+)="([^"]*)"', match[2])}
        arguments = {name: values[name] for name in ("path", "section") if name in values}
        found.setdefault(json.dumps(arguments), arguments)
    return list(found.values())


def _text(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if part.type == "text")


def _cost(result: CallToolResult) -> int:
    """Return the tokens of an answer: of its text, and of its structured content if there is any."""
    structured = json.dumps(result.structured_content, ensure_ascii=False) if result.structured_content else ""
    return count_tokens(_text(result)) + count_tokens(structured)


def _questions(wiki: Path) -> list[_Question]:
    """Return the questions whose section or passage is known, on pages that no question is taken from."""
    judged = json.loads((wiki / "queries.json").read_text("utf-8")) if (wiki / "queries.json").exists() else []
    known = [each for each in judged if each.get("excerpts") or len(each.get("sections", ())) == 1]
    excluded = {path for each in known for path in each["exclude"]}
    return [
        _Question(each["query"], wanted, frozenset(each["exclude"]))
        for each in known
        if excluded.isdisjoint(each["relevant"]) and (wanted := tuple(_wanted(wiki, each)))
    ]


def _wanted(wiki: Path, judged: dict[str, Any]) -> Iterator[str]:
    if judged.get("excerpts"):
        yield from map(_words, judged["excerpts"])
    else:
        page = wiki / "pages" / f"{judged['relevant'][0]}.md"
        for section in parse_markdown(page.read_text("utf-8")).sections if page.exists() else ():
            if section.heading == judged["sections"][0]:
                lines = [line.text for block in section.blocks for line in block.lines]
                yield " ".join(_words(" ".join(lines)).split()[:_JUDGED_WORDS])
                return


def _words(text: str) -> str:
    """Return the words of a text, without markdown."""
    return " ".join(re.findall(r"\w+", _NO_WORDS.sub(" ", text).casefold()))


def _spread(questions: Sequence[_Question], number: int) -> Iterator[_Question]:
    return (questions[at * len(questions) // number] for at in range(number))
