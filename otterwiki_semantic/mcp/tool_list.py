"""The list of tools as clients get it: schemas that cost few tokens, since every conversation begins with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp_types import CallToolResult, TextContent, Tool

from otterwiki_semantic.core.legacy_names import LegacyTool

_RARE = frozenset(
    {"mode", "fusion", "sort", "recency", "corrections", "min_similarity", "diversity", "context", "wait", "rerank"}
    | {"max_chunks_per_page", "category", "updated_before", "filter", "revision"}
)
"""Arguments that are taken, but not listed: agents seldom need them, and docs/mcp.md has them."""
_LEFT_OUT = frozenset({"title", "minimum", "maximum", "maxLength", "maxItems"})
"""Keywords of schemas that tell an agent nothing."""


def compact(tool: Tool) -> Tool:
    """Return a tool with a short input schema.

    Lists are also taken as single texts, and null for whatever is optional: neither is told.
    """
    schema = tool.input_schema
    properties = {name: _compact(each) for name, each in schema.get("properties", {}).items() if name not in _RARE}
    required = {"required": schema["required"]} if schema.get("required") else {}
    return tool.model_copy(update={"input_schema": {"type": "object", "properties": properties, **required}})


def _compact(schema: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in schema.items() if name not in _LEFT_OUT and (name, value) != ("default", None)}
    choices = [_compact(choice) for choice in kept.pop("anyOf", ()) if choice != {"type": "null"}]
    kind = next((choice for choice in choices if choice.get("type") == "array"), choices[0] if choices else {})
    return {**kind, **kept}


def under_legacy_name(tool: Tool, name: str, old: LegacyTool) -> Tool:
    """Return a tool as it is listed under another name."""
    schema = tool.input_schema
    properties = {own: schema["properties"][new] for own, new in old.arguments.items()}
    required = [own for own, new in old.arguments.items() if new in schema.get("required", ()) or own in old.required]
    changed = {"type": "object", "properties": properties, **({"required": required} if required else {})}
    about = f"{old.about} The same as {tool.name}."
    return tool.model_copy(update={"name": name, "description": about, "input_schema": changed})


def as_markdown_search(answer: CallToolResult) -> CallToolResult:
    """Return a search's answer with the text that servers for Markdown files give: JSON with file, section and similarity."""
    body = answer.structured_content
    if answer.is_error or body is None:
        return answer
    results = [
        {
            "file": f"{passage['path']}.md",
            "section": (passage["section_path"] or [passage["title"]])[-1],
            "header_path": " > ".join(passage["section_path"]),
            "content": passage["text"],
            "similarity": passage.get("similarity"),
        }
        for passage in body["results"]
    ]
    facts = {name: body[name] for name in ("confident", "notice", "left_out") if name in body}
    text = json.dumps({"results": results, **facts}, ensure_ascii=False)
    return answer.model_copy(update={"content": [TextContent(type="text", text=text)]})
