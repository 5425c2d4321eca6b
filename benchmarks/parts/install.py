"""What ``pip install otterwiki-semantic`` brings: the size of the wheel and of every distribution that it needs."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from packaging.requirements import Requirement

from benchmarks.support.options import ROOT, Options
from benchmarks.support.processes import tree_bytes
from benchmarks.support.report import Figure, at_most, missing

_NAME = "otterwiki-semantic"
_SOURCES = ("pyproject.toml", "setup.cfg", "README.md", "LICENSE")
_HEAVIEST = 10
_TORCH = re.compile(r"torch.*|triton|nvidia-.*|tensorflow.*|transformers|sentence-transformers")
"""What the project promises to do without."""
_MEGABYTE = 2**20


def measure(_options: Options) -> list[Figure]:
    """Return the wheel's size, the installed sizes, how much of it only ChromaDB needs, and whether PyTorch is among it."""
    needed = _needed(_NAME)
    sizes = {name: _installed_bytes(name) for name in needed - {_NAME}}
    only_chroma = {name: size for name, size in sizes.items() if name not in _needed(_NAME, without={"chromadb"})}
    heaviest = sorted(sizes, key=lambda name: -sizes[name])[:_HEAVIEST]
    unwanted = sorted(name for name in needed if _TORCH.fullmatch(name))
    total, chroma = sum(sizes.values()), sum(only_chroma.values())
    return [
        _wheel(),
        Figure("the package, installed", tree_bytes(ROOT / "otterwiki_semantic") / _MEGABYTE, "MB", note="the model included"),
        Figure(
            "distributions it needs", len(sizes), "", note="without extras; of the wiki's, those that the plugin needs, too"
        ),
        Figure("all of them, installed", total / _MEGABYTE, "MB"),
        Figure("needed by chromadb alone", chroma / _MEGABYTE, "MB", note=f"{len(only_chroma)} distributions, itself included"),
        *(_one(name, sizes[name], is_only_chroma=name in only_chroma) for name in heaviest),
        at_most("PyTorch, TensorFlow, transformers among them", len(unwanted), "", 0, ", ".join(unwanted)),
    ]


def _one(name: str, size: int, *, is_only_chroma: bool) -> Figure:
    return Figure(f"… {name}", size / _MEGABYTE, "MB", note="needed by chromadb alone" if is_only_chroma else "")


def _wheel() -> Figure:
    """Build the wheel of a copy, so that nothing that lies about here gets into it."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "source"
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "otterwiki_semantic", source / "otterwiki_semantic", ignore=without)
        for file in _SOURCES:
            shutil.copy(ROOT / file, source / file)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", name, str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(name).glob("*.whl"))
        if done.returncode or not wheels:
            last = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            return missing("the wheel", "MB", f"pip could not build it: {last}")
        return Figure("the wheel", wheels[0].stat().st_size / _MEGABYTE, "MB", note=wheels[0].name)


def _needed(root: str, without: Collection[str] = ()) -> set[str]:
    """Return the names of the installed distributions that one needs, itself included, on this system and without extras."""
    found: set[str] = set()
    waiting = [Requirement(root)]
    while waiting:
        requirement = waiting.pop()
        name = _normal(requirement.name)
        if name in found or name in without:
            continue
        found.add(name)
        waiting.extend(_requirements(requirement))
    return found


def _requirements(requirement: Requirement) -> Iterator[Requirement]:
    """Return what a distribution needs, with the extras that were asked for."""
    for line in importlib.metadata.distribution(requirement.name).requires or ():
        needed = Requirement(line)
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)):
            yield needed


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed_bytes(name: str) -> int:
    files = importlib.metadata.distribution(name).files or ()
    paths = (Path(str(file.locate())) for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file())
