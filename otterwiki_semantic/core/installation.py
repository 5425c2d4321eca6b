"""Where this installation came from, and the pip command that installs from there."""

from __future__ import annotations

import json
import shlex
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, requires
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import otterwiki_semantic

if TYPE_CHECKING:
    from packaging.requirements import Requirement

NAME = "otterwiki-semantic"


def pip_install(extra: str = "", *, reinstall: bool = False) -> str:
    """Return the pip command that installs this package, or one of its extras, from its origin (or else only the packages)."""
    origin = _origin()
    path = local_path(origin)
    if extra and path is not None and not path.exists():
        wanted = [f"{each.name}{each.specifier}" for each in requirements(NAME, extra)]
    else:
        wanted = source(origin, extra)
    options = ["--force-reinstall"] if reinstall else []
    return shlex.join(["pip", "install", *options, *wanted])


def source(origin: dict[str, Any], extra: str = "") -> list[str]:
    """Return pip's arguments for the origin that a `direct_url.json` describes (PEP 610); empty is the package index."""
    extras = f"[{extra}]" if extra else ""
    if (path := local_path(origin)) is not None and "dir_info" in origin:
        editable = ["--editable"] if origin["dir_info"].get("editable") else []
        return [*editable, f"{path}{extras}"]
    if "vcs_info" in origin:
        vcs, revision = origin["vcs_info"]["vcs"], origin["vcs_info"].get("requested_revision")
        subdirectory = f"#subdirectory={origin['subdirectory']}" if origin.get("subdirectory") else ""
        return [f"{NAME}{extras} @ {vcs}+{origin['url']}{f'@{revision}' if revision else ''}{subdirectory}"]
    return [f"{NAME}{extras} @ {origin['url']}" if origin else f"{NAME}{extras}"]


def local_path(origin: dict[str, Any]) -> Path | None:
    """Return the directory or file that an origin names, or None if it is not on this machine."""
    url = urlsplit(origin.get("url", ""))
    return Path(unquote(url.path)) if url.scheme == "file" and "vcs_info" not in origin else None


def requirements(package: str, extra: str = "") -> list[Requirement]:
    """Return what an installed package requires, or what only one of its extras adds; empty if it is not installed."""
    from packaging.requirements import Requirement

    try:
        found = [Requirement(line) for line in requires(package) or []]
    except PackageNotFoundError:
        return []
    always = [each for each in found if each.marker is None or each.marker.evaluate({"extra": ""})]
    if not extra:
        return always
    return [each for each in found if each not in always and each.marker and each.marker.evaluate({"extra": extra})]


@cache
def _origin() -> dict[str, Any]:
    # An editable installation leaves an egg-info directory in the checkout, which has no METADATA.
    installed = next((each for each in distributions(name=NAME) if each.read_text("METADATA")), None)
    if installed is None:  # run from its source, without an installation
        return {"url": Path(otterwiki_semantic.__file__).parent.parent.as_uri(), "dir_info": {}}
    found: dict[str, Any] = json.loads(installed.read_text("direct_url.json") or "{}")
    return found
