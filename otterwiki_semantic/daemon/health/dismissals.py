"""The findings that somebody dismissed, in a file of the data directory, which survives every rebuild."""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import threading
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from otterwiki_semantic.core.errors import DismissalError
from otterwiki_semantic.core.files import read_record, write_atomically
from otterwiki_semantic.indexing import now

_MAX_DISMISSED = 10_000
"""The oldest are forgotten beyond this number."""


log = logging.getLogger(__name__)


class _Stored(Struct, frozen=True):
    dismissed: dict[str, str] = {}
    """When each was dismissed, by id, oldest first."""
    secret: str = ""
    """The key of the ids that reveal nothing."""


class Dismissals:
    """The ids of dismissed findings. A damaged file counts as empty, which is logged."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._changing = threading.Lock()
        stored = read_record(file, _Stored, "no finding about the wiki counts as dismissed") or _Stored()
        self._dismissed = dict(stored.dismissed)
        self._secret = stored.secret

    def __contains__(self, finding: str) -> bool:
        return finding in self._dismissed

    def private_id(self, finding: str) -> str:
        """Return another id for a finding, by which only this wiki can tell what the finding is about."""
        with self._changing:
            if not self._secret:
                self._secret = secrets.token_hex(16)
                try:
                    self._store(self._dismissed)
                except OSError as error:
                    log.warning("the key of ids cannot be stored, so that they change with the next start: %s", error)
        return hmac.digest(self._secret.encode(), finding.encode(), "sha256").hex()[:16]

    def change(self, findings: Sequence[str], *, restore: bool) -> None:
        """Dismiss findings, or restore them. Errors: `DismissalError` if that cannot be stored; then nothing changes."""
        with self._changing:
            changed = {each: when for each, when in self._dismissed.items() if each not in findings}
            if not restore:
                changed.update(dict.fromkeys(findings, now()))
            changed = dict(list(changed.items())[-_MAX_DISMISSED:])
            try:
                self._store(changed)
            except OSError as error:
                hint = "let the wiki's user write to the data directory, or make room on its disk"
                raise DismissalError(f"the dismissal cannot be stored: {error}; {hint}") from error
            self._dismissed = changed

    def _store(self, dismissed: dict[str, str]) -> None:
        write_atomically(self._file, json.dumps({"dismissed": dismissed, "secret": self._secret}))
