"""Records as JSON, and their JSON Schemas, shared by the API, the daemon's socket and the command line.

A record's fields are the fields of its JSON. In a record with ``omit_defaults``, fields with their default value are left out.
The string below a field describes it in the schema.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, get_type_hints

import msgspec

T = TypeVar("T")
Schema = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_decoders_lock = Lock()


def encode(value: Any) -> bytes:
    """Encode records, and lists and dicts of them, as JSON."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate, which JSON can only escape
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode("ascii")


def decode(data: bytes | msgspec.Raw, type_: type[T]) -> T:
    """Decode a record. Errors: `msgspec.ValidationError`, `msgspec.DecodeError`."""
    decoded: T = _decoder(type_).decode(data)
    return decoded


def convert(value: Any, type_: type[T]) -> T:
    """Convert dicts, lists, strings and numbers to a record. Errors: `msgspec.ValidationError`."""
    _decoder(type_)
    return msgspec.convert(value, type_)


def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a type, made by one thread at a time: msgspec crashes if two use a record for the first time."""
    if type_ not in _decoders:
        with _decoders_lock:
            _decoders[type_] = msgspec.json.Decoder(type_)
    return _decoders[type_]


def json_schemas(records: Iterable[type]) -> dict[str, Schema]:
    """Return the JSON Schemas of records and their nested records, by name; references are below `components/schemas`."""
    known = _structs_in(records, {})
    _, schemas = msgspec.json.schema_components(list(known.values()), ref_template=_REFERENCE)
    return {name: _described(known[name], schema) if name in known else schema for name, schema in schemas.items()}


def _structs_in(hints: Iterable[Any], found: dict[str, type[msgspec.Struct]]) -> dict[str, type[msgspec.Struct]]:
    """Add the records in types, and the records in their fields, by name."""
    for hint in hints:
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct) and hint.__name__ not in found:
            found[hint.__name__] = hint
            _structs_in(get_type_hints(hint).values(), found)
        _structs_in(getattr(hint, "__args__", ()), found)
    return found


def _described(record: type[msgspec.Struct], schema: Schema) -> Schema:
    descriptions = field_descriptions(record)
    is_sparse = record.__struct_config__.omit_defaults
    optional = {each.name for each in msgspec.structs.fields(record) if is_sparse and not each.required}
    properties = {
        name: _property(value, is_optional=name in optional)
        | ({"description": descriptions[name]} if name in descriptions else {})
        for name, value in schema["properties"].items()
    }
    required = [name for name in properties if name not in optional]
    return {"type": "object", "description": inspect.getdoc(record), "properties": properties, "required": required}


def _property(schema: Schema, *, is_optional: bool) -> Schema:
    plain = {key: _without_false(value) for key, value in schema.items() if key != "default"}
    if is_optional and "anyOf" in plain:
        (plain,) = (choice for choice in plain["anyOf"] if choice != {"type": "null"})
    return plain


def _without_false(schema: Any) -> Any:
    """Return a schema without `"items": false`, which breaks some client generators and is implied by `maxItems`."""
    if isinstance(schema, list):
        return [_without_false(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    is_implied = schema.get("items") is False and "maxItems" in schema
    return {key: _without_false(value) for key, value in schema.items() if not (is_implied and key == "items")}


def field_descriptions(record: type[msgspec.Struct]) -> dict[str, str]:
    """Return the string below each described field of a record, by name; a subclass overrides descriptions."""
    classes = reversed(record.__mro__[: record.__mro__.index(msgspec.Struct)])
    return {
        field.target.id: " ".join(below.value.value.split())
        for each in classes
        for field, below in pairwise(_classes(inspect.getfile(each))[each.__name__].body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }


@cache
def _classes(file: str) -> dict[str, ast.ClassDef]:
    module = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
