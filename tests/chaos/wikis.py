"""A small wiki made of a seed, every section of which can be found by a word of its own, and the commits that change it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from random import Random

Pages = dict[str, str]
"""Markdown by file name."""
Change = Callable[["Wiki"], list[Pages]]
"""Gives the states that a wiki takes one after the other."""

_FIRST_COMMIT = 1_700_000_000
MARK = re.compile(r"\bzq[a-z]{4}\b")
"""A word that tells where and when a text stood in a wiki."""
_WORDS = [
    word
    for line in (
        "anchor apple autumn barrel basket beacon bicycle boiler bridge bucket cable candle canvas castle cellar chimney clock",
        "coal coffee compass copper cotton cradle curtain desert dragon drawer engine feather flour forest fountain frost",
        "garden glass grain granite hammer harbor harvest helmet hinge honey island kettle kitchen ladder lantern leather",
        "lemon letter library lumber magnet market meadow mirror mountain needle notebook ocean onion orchard paint paper",
        "pebble pencil pepper pillow planet pocket pottery powder rabbit radio ribbon river rocket roof rope saddle salt",
        "shadow shelter silver spoon station storm street sugar summer temple thread thunder timber tower tunnel valley velvet",
        "village violin wagon water wheat wheel window winter wool",
    )
    for word in line.split()
]
_PLACES = ("", "", "", "house/", "house/", "garden/", "machines/")
_BOILERPLATE = ("notes/liability.md", "archive/liability.md")
"""Two pages of one content, so that their passages share vectors."""


class Wiki:
    """The pages of a wiki, and what can happen to them."""

    def __init__(self, seed: int | str, size: int) -> None:
        self.random = Random(f"wiki {seed}")
        self._numbers = count()
        self.pages: Pages = {}
        for _ in range(size):
            self.add()
        self.pages.update(dict.fromkeys(_BOILERPLATE, self._page("Liability")))

    def add(self) -> str:
        """Add a page, and give its file name."""
        name = f"{self.random.choice(_PLACES)}{self.random.choice(_WORDS)}-{next(self._numbers)}"
        self.pages[f"{name}.md"] = self._page(name.rpartition("/")[2].replace("-", " ").capitalize())
        return f"{name}.md"

    def some(self, number: int) -> list[str]:
        """Return the file names of some pages that share no text with others."""
        return self.random.sample(sorted(self.pages.keys() - set(_BOILERPLATE)), number)

    def edit(self, name: str) -> None:
        """Write one section of a page anew, or add one; its other sections stay."""
        parts = self.pages[name].split("\n## ")
        section = f"{self._heading()}\n\n{self._text()}\n"
        if len(parts) > 1 and self.random.random() < 0.7:
            parts[self.random.randrange(1, len(parts))] = section
        else:
            parts.append(section)
        self.pages[name] = "\n## ".join(parts)

    def rewrite(self, name: str) -> None:
        """Write a page anew."""
        self.pages[name] = self._page("Anew")

    def remove(self, name: str) -> None:
        """Remove a page."""
        del self.pages[name]

    def rename(self, name: str, new_name: str) -> None:
        """Move a page."""
        self.pages[new_name] = self.pages.pop(name)

    def _page(self, title: str) -> str:
        start = f"---\ntitle: {title}\ncategory: {self.random.choice(_WORDS)}\ntags: [{', '.join(self._words(2))}]\n---\n\n"
        head = start if self.random.random() < 0.5 or title == "Liability" else f"# {title}\n\n"
        links = "".join(f" See [[{name.removesuffix('.md')}]]." for name in self.some(1)) if len(self.pages) > 2 else ""
        sections = [f"## {self._heading()}\n\n{self._text()}\n" for _ in range(self.random.randint(1, 3))]
        return "\n".join((f"{head}{self._text()}{links}\n", *sections))

    def _heading(self) -> str:
        return " ".join(self._words(2)).capitalize()

    def _text(self) -> str:
        """Return a text with a mark: a word that stands nowhere else."""
        number = next(self._numbers)
        mark = "zq" + "".join(chr(ord("a") + number // 26**place % 26) for place in range(4))
        sentences = [self._words(self.random.randint(6, 14)) for _ in range(self.random.choice((2, 5, 6, 8, 18)))]
        self.random.choice(sentences).append(mark)
        return " ".join(" ".join(sentence).capitalize() + "." for sentence in sentences)

    def _words(self, number: int) -> list[str]:
        return self.random.choices(_WORDS, k=number)


def marks(pages: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the marks of a wiki, each with the paths of the pages it stands on."""
    found: dict[str, set[str]] = {}
    for name, content in pages.items():
        for mark in MARK.findall(content):
            found.setdefault(mark, set()).add(name.removesuffix(".md"))
    return found


def make_history(repository: Path, base: Pages, branches: Mapping[str, list[Pages]]) -> dict[str, list[str]]:
    """Make a repository with one commit, and a branch of further ones for each name; give their ids, the first one's included.

    The same pages give the same commits, an hour apart.
    """
    repository.mkdir(parents=True)
    _git(repository, "init", "-q", "-b", "main")
    first = _commit(repository, {}, base, 0)
    commits = {}
    for name, states in branches.items():
        _git(repository, "checkout", "-q", "--detach", first)
        made, before = [first], base
        for number, pages in enumerate(states, 1):
            made.append(_commit(repository, before, pages, number))
            before = pages
        commits[name] = made
    _git(repository, "checkout", "-q", "main")
    return commits


def move_head(repository: Path, commit: str) -> None:
    """Let the branch that HEAD is on be at a commit."""
    _git(repository, "update-ref", "HEAD", commit)


def _commit(repository: Path, before: Mapping[str, str], pages: Mapping[str, str], number: int) -> str:
    for name in before.keys() - pages.keys():
        (repository / name).unlink()
    for name, content in pages.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(content)
    _git(repository, "add", "-A")
    _git(repository, "commit", "-q", "-m", "change", time=_FIRST_COMMIT + 3600 * number)
    return _git(repository, "rev-parse", "HEAD")


def _git(repository: Path, *arguments: str, time: int = _FIRST_COMMIT) -> str:
    command = ["git", "-C", str(repository), "-c", "user.name=Test", "-c", "user.email=test@example.org", *arguments]
    dates = {"GIT_AUTHOR_DATE": f"@{time} +0000", "GIT_COMMITTER_DATE": f"@{time} +0000"}
    answer = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **dates})
    return answer.stdout.strip()
