from __future__ import annotations

from pathlib import Path


def fake_package(place: Path, name: str, version: str, entry_point: str = "", module: str = "") -> None:
    """Install a package in a directory, with an entry point of a plugin of the wiki, and the text of its module."""
    importable = name.replace("-", "_")
    facts = place / f"{importable}-{version}.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if entry_point:
        (facts / "entry_points.txt").write_text(f"[otterwiki]\n{entry_point}\n")
    if module:
        (place / f"{importable}.py").write_text(module)
