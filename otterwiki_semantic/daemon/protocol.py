"""What the owner of an index and its clients say to each other: one JSON object a line over a Unix socket.

Request: ``{"version", "repository", "settings", "call", "arguments"}``. Reply: ``{"result"}`` or ``{"error": {"type",
"message"}}``, with the name of a class of `errors`. Both sides must be of the same version of this package, with the same
records: an owner that is not ends, and is replaced, and so is one that was started with other settings than the wiki has now
(the command line sends none). One of another repository answers nothing and counts no users; it ends when its own have gone.
Only ``{"call": "who"}`` is answered to everybody, with ``{"version", "pid", "repository", "settings"}``: nothing ends of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import types
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from otterwiki_semantic import __version__
from otterwiki_semantic.core import errors
from otterwiki_semantic.core.errors import DaemonUnavailableError, NotFoundError, SemanticError
from otterwiki_semantic.core.records import shallow_dict
from otterwiki_semantic.core.settings import SECRETS, Settings

MAX_REQUEST_BYTES = 8 << 20
MAX_REPLY_BYTES = 64 << 20
LIFELINE, REPORT, STARTING = 3, 4, 5
"""Numbers of the files that an owner finds open, beside the streams: the reading end of its starter's pipe, which shows when
that one has gone; a pipe to tell how it ended; and a lock: while it is held nobody else starts an owner."""
ENDED_IN_ORDER = "ended in order"
"""What an owner reports to its starter when it ends as it should; anything else is why it cannot work."""
WHO = "who"
"""The call that asks an owner of any version who it is."""
_MAX_SOCKET_PATH = 100
"""Bytes of a path that a Unix socket can be bound to on every system; the limit is 104 or 108."""

_PATHS = ("repository", "data_dir", "eval_queries", "chroma_ca")
"""The settings that are paths."""
MODEL_OPTIONS = "SEMANTIC_MODEL_OPTIONS"
_IN_ENVIRONMENT = {field: name for field, name in SECRETS.items() if field != "api_key"} | {"model_options": MODEL_OPTIONS}
"""The fields that the owner finds in its environment, not in its command line."""

T = TypeVar("T")


@cache
def code_version() -> str:
    """Give the version, and what tells the records of this code from others of the same version, as a checkout has them."""
    here = Path(__file__).parent
    spoken = (Path(__file__), here / "interface.py", *sorted(here.with_name("core").glob("records/*.py")))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in spoken))
    return f"{__version__}+{digest.hexdigest()[:12]}"


def settings_argument(settings: Settings) -> str:
    """Give what the owner has to know of the settings, without secrets, as its command line's argument."""
    return json.dumps(asdict(settings) | dict.fromkeys(SECRETS) | {"model_options": None}, default=str)


def secrets_environment(settings: Settings) -> dict[str, str]:
    """Give the secrets that the owner needs, for its environment. The key of the wiki's API is no business of its.

    Options of a model go the same way: they should hold no key, but may.
    """
    values = {name: getattr(settings, field) for field, name in _IN_ENVIRONMENT.items()}
    return {name: value for name, value in values.items() if value is not None}


@cache
def settings_fingerprint(settings: Settings) -> str:
    """Tell settings apart."""
    told = settings_argument(settings) + json.dumps(secrets_environment(settings), sort_keys=True)
    return hashlib.sha256(told.encode("utf-8", errors="surrogatepass")).hexdigest()[:12]


def settings_from(argument: str, environment: Mapping[str, str] = os.environ) -> Settings:
    """Give the settings that `settings_argument` and `secrets_environment` were made of."""
    values = json.loads(argument)
    paths = {name: Path(values[name]) for name in _PATHS if values[name] is not None}
    secrets = {field: environment.get(name) for field, name in _IN_ENVIRONMENT.items()}
    return Settings(**{**values, **paths, **secrets, "model_options": environment.get(MODEL_OPTIONS, "{}")})


def socket_location(data_dir: Path) -> Path:
    """Give the place of the owner's socket: in the data directory, or for a long path in a private directory of its own."""
    path = data_dir / "owner.sock"
    if len(os.fsencode(path)) <= _MAX_SOCKET_PATH:
        return path
    name = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"otterwiki-semantic-{os.getuid()}" / f"{name}.sock"


def socket_path(data_dir: Path) -> Path:
    """Give the owner's socket, in a directory that is there and private: see `socket_location`."""
    path = socket_location(data_dir)
    if path.parent == data_dir:
        return path
    path.parent.mkdir(mode=0o700, exist_ok=True)
    facts = path.parent.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise DaemonUnavailableError(
            f"{path.parent} is not a private directory of this user; remove it or set a shorter SEMANTIC_DATA_DIR"
        )
    return path


def encode(message: dict[str, Any]) -> bytes:
    """Give a message as a line."""
    return json.dumps(message, default=shallow_dict, separators=(",", ":")).encode() + b"\n"


def error_message(error: SemanticError) -> dict[str, Any]:
    """Give the reply that tells of an error."""
    nearest = {"nearest": error.nearest} if isinstance(error, NotFoundError) else {}
    return {"error": {"type": type(error).__name__, "message": str(error), **nearest}}


def error_from(message: dict[str, Any]) -> SemanticError:
    """Give the error that a reply tells of."""
    kind = getattr(errors, message["type"], None)
    if isinstance(kind, type) and issubclass(kind, NotFoundError):
        return kind(message["message"], message.get("nearest", ()))
    if isinstance(kind, type) and issubclass(kind, SemanticError):
        return kind(message["message"])
    return SemanticError(message["message"])


def revive(kind: type[T], value: Any) -> T:
    """Give the record that JSON was made of: dataclasses, tuples, enumerations and optional values, to any depth."""
    revived: T = _reviver(cast("Hashable", kind))(value)
    return revived


@cache
def _reviver(kind: Any) -> Callable[[Any], Any]:
    """Give what makes values of a kind; found out once for each kind, since an answer holds hundreds of values."""
    arguments, origin = get_args(kind), get_origin(kind)
    if origin is types.UnionType:
        some = _reviver(next(option for option in arguments if option is not types.NoneType))
        return lambda value: None if value is None else some(value)
    if origin in {tuple, list}:
        item = _reviver(arguments[0])
        return origin if item is _as_it_is else lambda values: origin(map(item, values))
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        parts = [(field.name, _reviver(hints[field.name])) for field in fields(kind)]
        return lambda value: kind(**{name: part(value[name]) for name, part in parts})
    if isinstance(kind, type) and issubclass(kind, tuple):  # a named one, of plain values
        return lambda values: kind(*values)
    return kind if isinstance(kind, type) and issubclass(kind, Enum) else _as_it_is


def _as_it_is(value: Any) -> Any:
    return value
