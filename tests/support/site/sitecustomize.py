"""Gives wikis, commands and index daemons that tests start light parts: see `tests.support.light_parts`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from tests.support.light_parts import REPLACEMENTS


class _Replacer(MetaPathFinder):
    """Replaces parts of a module as soon as it is imported."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        replace = REPLACEMENTS.get(name)
        spec = PathFinder.find_spec(name, path, target) if replace else None
        if replace is None or spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_replace(module: ModuleType) -> None:
            load(module)
            replace(module, setattr)

        _set_loading(spec.loader, load_and_replace)
        return spec


def _set_loading(loader: Loader, load: object) -> None:
    loader.exec_module = load  # type: ignore[method-assign, assignment]


sys.meta_path.insert(0, _Replacer())
