"""Write the tables of request parameters into the docs, from the records that define them: ``make docs``.

A table is between ``<!-- parameters of NAME -->`` and ``<!-- end -->``; NAME is a class of `core.records`. With
``<!-- parameters of NAME without BASE -->`` the table omits the parameters of the class BASE.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from otterwiki_semantic.core import records
from otterwiki_semantic.core.parameter_parsing import Parameter, parameters_of

DOCS = Path(__file__).parent.parent / "docs"
_TABLE = re.compile(r"(<!-- parameters of (\w+)(?: without (\w+))? -->\n).*?(<!-- end -->)", re.DOTALL)
_HEAD = "| parameter | default | allowed | meaning |\n|---|---|---|---|\n"


def with_tables(text: str) -> str:
    """Return a document with its tables of parameters as they are defined now."""
    return _TABLE.sub(lambda match: f"{match[1]}{_table(match[2], match[3])}{match[4]}", text)


def _table(name: str, base: str | None) -> str:
    omitted = {parameter.name for parameter in parameters_of(getattr(records, base))} if base else set()
    shown = (parameter for parameter in parameters_of(getattr(records, name)) if parameter.name not in omitted)
    return _HEAD + "".join(f"{_row(parameter)}\n" for parameter in shown)


def _row(parameter: Parameter) -> str:
    default = parameter.schema.get("default", "required" if parameter.is_required else None)
    shown = "" if default in (None, "") else default if parameter.is_required else f"`{str(default).lower()}`"
    return f"| `{parameter.name}` | {shown} | {_allowed(parameter.values)} | {parameter.help} |"


def _allowed(schema: dict[str, Any]) -> str:
    match schema:
        case {"enum": choices}:
            return ", ".join(f"`{choice}`" for choice in choices)
        case {"minimum": least, "maximum": most}:
            return f"{least:g} to {most:g}"
        case {"type": "boolean"}:
            return "`true`, `false`"
        case {"type": "array", "items": {"enum": _}}:
            return "names, separated by commas"
        case {"type": "array", "items": {"maxLength": most}, "maxItems": items}:
            return f"1 to {most:,} characters, up to {items:,} times"
        case {"type": "array", "items": {"type": "object"}, "maxItems": items}:
            return f"a list of up to {items:,} objects"
        case {"maxLength": most}:
            return f"{schema.get('minLength', 0)} to {most:,} characters"
        case {"anyOf": [{"format": "date"}, *_]}:
            return "date or time"
    return f"`{schema['pattern']}`"


def main() -> None:
    """Rewrite the documents whose tables have changed."""
    for path in sorted(DOCS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if (changed := with_tables(text)) != text:
            path.write_text(changed, encoding="utf-8")
            print(f"{path.name}: tables written")


if __name__ == "__main__":
    main()
