"""The Python packages that this one and the wiki want: whether they are there, in versions that both take."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from otterwiki_semantic.cli.doctor.checks.installation import NAME
from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem

_WIKI = "otterwiki"
_EXTRAS = {
    "mcp": "otterwiki-semantic mcp, the server for agents",
    "map": "the map of the wiki",
    "metrics": "figures for Prometheus",
    "eval": "the picture of otterwiki-semantic eval --plot",
    "sentence-transformers": "models and rerankers of that library",
}


def check_packages(_: DoctorContext) -> Iterator[Finding]:
    """See to what is wanted, to the wiki's version, and to what is optional."""
    wanted = [want for name in (NAME, _WIKI) for want in _wants(name)]
    unmet = [unmet for want in wanted if (unmet := _unmet(*want)) is not None]
    yield from unmet
    if not unmet:
        yield ok("packages", f"all {len(wanted)} that {NAME} and the wiki want, in versions that they take")
    for want in _wants(NAME, "wiki"):
        if want[1] == _WIKI and _installed(_WIKI) and (unmet_wiki := _unmet(*want)) is not None:
            yield unmet_wiki
    for extra, purpose in _EXTRAS.items():
        yield _optional(extra, purpose)


def _wants(name: str, extra: str = "") -> list[tuple[str, str, str]]:
    """Give who wants which package in which versions; with an extra, only what that one adds."""
    from packaging.requirements import Requirement

    try:
        lines = requires(name) or []
    except PackageNotFoundError:
        return []
    found = []
    for want in map(Requirement, lines):
        is_plain = want.marker is None or want.marker.evaluate({"extra": ""})
        if is_plain != bool(extra) and (is_plain or (want.marker and want.marker.evaluate({"extra": extra}))):
            found.append((name, want.name, str(want.specifier)))
    return found


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _unmet(who: str, name: str, versions: str) -> Finding | None:
    """Tell of a package that is missing or of the wrong version; None if it is as it should be."""
    from packaging.specifiers import SpecifierSet

    installed = _installed(name)
    if installed is not None and SpecifierSet(versions).contains(installed, prereleases=True):
        return None
    detail = f"{who} wants {name}{versions}, and {installed or 'none'} is installed"
    return problem("packages", detail, f'pip install "{name}{versions}"')


def _optional(extra: str, purpose: str) -> Finding:
    missing = [name for who, name, versions in _wants(NAME, extra) if _unmet(who, name, versions)]
    if missing:
        return note(f"extra {extra}", f"not installed: {purpose}", f'if you want it: pip install "{NAME}[{extra}]"')
    return ok(f"extra {extra}", f"installed: {purpose}")
