"""Find regular expressions that take more than linear time, by texts made of what their own repeats accept."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import regex

import otterwiki_semantic
from tests.support.fork_server import python

op: Any = importlib.import_module("re._constants")
_parser: Any = importlib.import_module("re._parser")
Node = tuple[Any, Any]
_REPEATS = {op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT}
_SHORTER = 5
_NEGLIGIBLE = 0.0001
"""Seconds for a short text. A quadratic expression takes at least thrice as long for 1,000 characters on a fast processor."""
_HOPELESS = 1.0
"""Seconds. Linear expressions take a hundredth."""
_MANY = 8
"""Repeats that are bounded by less are no loop."""
_COMMON = " \n\t\raA1-."
_CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d", op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_SPACE: r"\s", op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w", op.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip
_FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE
_METHODS = {"compile", "search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split"}


class Expression(NamedTuple):
    """A regular expression of the package."""

    name: str
    pattern: str
    flags: int
    engine: str
    """`re` or `regex`."""

    def compiled(self) -> Any:
        """Return it compiled."""
        return (re if self.engine == "re" else regex).compile(self.pattern, self.flags)


# Finding them


def expressions() -> list[Expression]:
    """Return the expressions of all modules: those compiled when a module is loaded, and those of literals in functions."""
    found: dict[tuple[str, int, str], Expression] = {}
    for module in modules():
        for name, value in vars(module).items():
            for each in _compiled(value):
                engine = "re" if isinstance(each, re.Pattern) else "regex"
                key = (each.pattern, each.flags & _FLAGS, engine)
                found.setdefault(key, Expression(f"{module.__name__}.{name}", *key))
        for call in calls(module):
            if isinstance(call.pattern, str):
                key = (call.pattern, call.flags, call.engine)
                found.setdefault(key, Expression(f"{module.__name__}:{call.line}", *key))
    return list(found.values())


def modules() -> Iterator[Any]:
    """Yield all modules of the package."""
    for each in pkgutil.walk_packages(otterwiki_semantic.__path__, "otterwiki_semantic."):
        if not each.name.endswith("__main__"):
            yield importlib.import_module(each.name)


def _compiled(value: object) -> Iterator[Any]:
    if isinstance(value, re.Pattern | regex.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif isinstance(value, dict):
        yield from (each for inner in value.values() for each in _compiled(inner))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (each for inner in value for each in _compiled(inner))


class Call(NamedTuple):
    """A call of the functions of `re` or `regex` in a function."""

    line: int
    function: str
    pattern: str | None
    """None unless it is a literal."""
    flags: int
    engine: str


@cache
def calls(module: Any) -> tuple[Call, ...]:
    """Return the uses of expressions in the functions of a module that are not compiled when it is loaded."""
    source = Path(module.__file__).read_text(encoding="utf-8")
    return tuple(_calls(ast.parse(source), "")) if re.search(r"\b(?:re|regex)\.", source) else ()


def _calls(node: ast.AST, function: str) -> Iterator[Call]:
    for child in ast.iter_child_nodes(node):
        inner = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if function and isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute):
            engine = getattr(child.func.value, "id", "")
            if engine in {"re", "regex"} and child.func.attr in _METHODS:
                first = child.args[0]
                literal = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
                named = {each.attr for each in ast.walk(child) if isinstance(each, ast.Attribute) and each.attr.isupper()}
                flags = sum(getattr(re, name) for name in named & {"IGNORECASE", "MULTILINE", "DOTALL", "VERBOSE"})
                yield Call(child.lineno, inner, literal, int(flags), engine)
        yield from _calls(child, inner)


# Texts for them


def texts(expression: Expression, size: int) -> dict[str, str]:
    """Return texts of about `size` characters that could keep an expression busy, by how they are made."""
    pattern = re.sub(r"\\p\{(\w+)\}", lambda match: _with_property(match[0]), expression.pattern)
    tree = list(_parser.parse(pattern.replace(r"\X", "."), expression.flags & _FLAGS))
    maker = _Maker(tree, bool(expression.flags & re.DOTALL))
    made: dict[str, str] = {}

    def add(*parts: tuple[str, int] | str) -> None:
        text = "".join(part if isinstance(part, str) else part[0] * max(1, part[1]) for part in parts)
        made[" + ".join(repr(part) if isinstance(part, str) else f"{part[0]!r}*{part[1]}" for part in parts if part)] = text

    for prefix, units in maker.loops(tree, ""):
        for unit in units:
            whole = (unit, size // len(unit))
            add(prefix, whole, "a\n\0")
            add((prefix + unit, size // len(prefix + unit)))
    return made


@cache
def _with_property(escape: str) -> str:
    """Return the first character, from digits on, that has a property of Unicode: `re` knows none."""
    return next(filter(regex.compile(escape).match, map(chr, range(0x30, 0x10000))))


class _Maker:
    def __init__(self, tree: Sequence[Node], dot_all: bool) -> None:
        literals = {chr(argument) for kind, argument in _all_nodes(tree) if kind is op.LITERAL}
        self._alphabet = [*_COMMON, *sorted(literals - set(_COMMON)), "é", "\0"]
        self._dot_all = dot_all
        self._groups: dict[int, str] = {}

    def loops(self, nodes: Iterable[Node], prefix: str) -> Iterator[tuple[str, list[str]]]:
        """Yield for each repeat a text that leads to it, and texts that it repeats."""
        for kind, argument in nodes:
            if kind in _REPEATS:
                _, most, body = argument
                if most >= _MANY:
                    yield prefix, [unit for unit in self._samples(list(body)) if unit]
                yield from self.loops(body, prefix)
            elif kind is op.BRANCH:
                for branch in argument[1]:
                    yield from self.loops(branch, prefix)
            elif kind is op.SUBPATTERN:
                yield from self.loops(argument[-1], prefix)
            elif kind is op.ATOMIC_GROUP:
                yield from self.loops(argument, prefix)
            elif kind is op.ASSERT or kind is op.ASSERT_NOT:
                yield from self.loops(argument[1], prefix)
            prefix += self._sample([(kind, argument)])

    def _samples(self, body: list[Node]) -> list[str]:
        """Return texts that match a sequence: the shortest, and others with one choice made differently."""
        if len(body) == 1:
            kind, argument = body[0]
            if kind is op.BRANCH:
                return list(dict.fromkeys(each for branch in argument[1] for each in self._samples(list(branch))))
            if kind is op.SUBPATTERN:
                return self._samples(list(argument[-1]))
            if kind is op.ATOMIC_GROUP:
                return self._samples(list(argument))
            if kind in _REPEATS:
                return self._samples(list(argument[2]))
            return self._characters(body[0])[:12] or [self._sample(body)]
        found = [self._sample(body), self._sample(body, least=1)]
        for at, node in enumerate(body):
            before, after = self._sample(body[:at], 0), self._sample(body[at + 1 :], 0)
            found += [before + each + after for each in self._samples([node])[:4]]
        return list(dict.fromkeys(found))

    def _sample(self, nodes: Iterable[Node], least: int = 0) -> str:
        return "".join(self._of(kind, argument, least) for kind, argument in nodes)

    def _of(self, kind: Any, argument: Any, least: int) -> str:
        if kind in _REPEATS:
            fewest, most, body = argument
            return self._sample(body, least) * int(min(max(fewest, least), most, 20))
        if kind is op.BRANCH:
            return self._sample(argument[1][0], least)
        if kind is op.SUBPATTERN:
            self._groups[argument[0] or 0] = self._sample(argument[-1], least)
            return self._groups[argument[0] or 0]
        if kind is op.ATOMIC_GROUP:
            return self._sample(argument, least)
        if kind is op.GROUPREF:
            return self._groups.get(argument, "")
        return next(iter(self._characters((kind, argument))), "")

    def _characters(self, node: Node) -> list[str]:
        """Return characters that a node for one character accepts."""
        kind, argument = node
        if kind is op.LITERAL:
            return [chr(argument)]
        if kind is op.NOT_LITERAL:
            return [each for each in self._alphabet if each != chr(argument)]
        if kind is op.ANY:
            return [each for each in self._alphabet if self._dot_all or each != "\n"]
        if kind is op.IN:
            named = (value for part, value in argument if part in {op.RANGE, op.LITERAL})
            firsts = (chr(value[0] if isinstance(value, tuple) else value) for value in named)
            return [each for each in self._alphabet if _is_in(each, argument)] or list(islice(firsts, 1))
        return []


def _all_nodes(tree: Any) -> Iterator[Node]:
    """Yield the nodes of a parse tree, including those within others."""
    if isinstance(tree, tuple) and len(tree) == 2 and type(tree[0]) is type(op.LITERAL):
        yield tree
        yield from _all_nodes(tree[1])
    elif isinstance(tree, list | tuple | _parser.SubPattern):
        for each in tree:
            yield from _all_nodes(each)


def has_possessive_group(pattern: str, flags: int = 0) -> bool:
    """Whether a pattern repeats more than one kind of character possessively."""
    repeats = (arguments for kind, arguments in _all_nodes(_parser.parse(pattern, flags)) if kind is op.POSSESSIVE_REPEAT)
    return any(len(inner) != 1 or inner[0][0] in {op.SUBPATTERN, op.BRANCH} for _, _, inner in repeats)


def _is_in(character: str, parts: Sequence[Node]) -> bool:
    negated = bool(parts) and parts[0][0] is op.NEGATE
    return negated != any(
        (kind is op.LITERAL and ord(character) == value)
        or (kind is op.RANGE and value[0] <= ord(character) <= value[1])
        or (kind is op.CATEGORY and re.match(_CATEGORIES[value], character) is not None)
        for kind, value in parts
    )


# Trying them


def slow(tried: Sequence[Expression], size: int) -> dict[Expression, str]:
    """Return the expressions that take more than linear time for one of the `texts`, with how that text is made.

    They run in a process that the system ends, as nothing else stops an expression.
    """
    found = {}
    left = list(tried)
    while left:
        program = subprocess.run(
            (python(), "-m", "tests.support.pumps", str(size)),
            input=json.dumps(left),
            capture_output=True,
            text=True,
            check=False,
        )
        *_, last = program.stdout.splitlines() or [""]
        if program.returncode == 0:
            break
        if program.returncode != -signal.SIGVTALRM:
            raise AssertionError(program.stderr)
        number, _, text = last.partition(" ")
        found[left[int(number)]] = text
        left = left[int(number) + 1 :]
    return found


def main(size: int) -> None:
    """Try the expressions from standard input on texts, print how each text is made, and end at the first slow expression."""
    for number, fields in enumerate(json.load(sys.stdin)):
        expression = Expression(*fields)
        compiled = expression.compiled()
        made = (texts(expression, each) for each in (size // _SHORTER, size))
        for brief, (name, text) in zip(*(each.items() for each in made), strict=True):
            print(number, name, flush=True)
            if _seconds(compiled, brief[1]) > _NEGLIGIBLE and _grows(compiled, brief[1], text):
                signal.raise_signal(signal.SIGVTALRM)


def _grows(compiled: Any, brief: str, text: str) -> bool:
    """Return whether the time grows faster than linearly from `brief` to `text`, which is five times as long.

    Five times as much is linear, 25 times as much quadratic; the line is drawn between them. Whatever seems to be above it is
    timed again, both texts in turns, because the processor may have become slower in between.
    """
    line: float = _SHORTER**1.5
    least = min(_seconds(compiled, brief) for _ in range(5))
    if least <= _NEGLIGIBLE or _seconds(compiled, text) <= line * least:
        return False
    again = [(_seconds(compiled, brief), _seconds(compiled, text)) for _ in range(10)]
    return min(longer for _, longer in again) > line * min(shorter for shorter, _ in again)


def _seconds(compiled: Any, text: str) -> float:
    """Return the seconds of processor time that a text takes. The process ends if it takes more than `_HOPELESS`."""
    signal.setitimer(signal.ITIMER_VIRTUAL, _HOPELESS)
    start = time.thread_time()  # that of a process only counts ticks while a timer runs
    deque(compiled.finditer(text), maxlen=0)
    compiled.fullmatch(text)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.thread_time() - start


if __name__ == "__main__":
    main(int(sys.argv[1]))
