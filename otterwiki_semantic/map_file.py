"""The map as it is kept: a file beside the generations, since the places of pages outlive each of them."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path

Place = tuple[float, float]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredMap:
    """A map that was made: of what `content`, when (ISO 8601 in UTC), in how many seconds, and each page's place by path.

    Places are 0 to 1 in both directions; `span` is what 1 stands for in the projection's own units.
    """

    content: str
    made: str
    seconds: float
    span: float
    places: dict[str, Place]


def read_map(path: Path) -> StoredMap | None:
    """Give the map that was kept; None if there is none that can be read."""
    try:
        values = json.loads(path.read_bytes())
        places = {page: (float(x), float(y)) for page, (x, y) in values.pop("places").items()}
        found = StoredMap(**values, places=places)
        is_sound = all(0 <= x <= 1 and 0 <= y <= 1 for x, y in places.values()) and 0 < found.span < float("inf")
        return found if is_sound and found.seconds >= 0 else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        log.warning("the map cannot be read, and is made again: %s", error)
        return None


def write_map(path: Path, made: StoredMap) -> None:
    """Keep a map in place of the last one, in one step that a crash cannot halve. Errors: `OSError`."""
    scratch = path.with_suffix(".new")
    with scratch.open("w", encoding="ascii") as stream:
        json.dump(asdict(made), stream, separators=(",", ":"))
        stream.flush()
        os.fsync(stream.fileno())
    scratch.replace(path)
