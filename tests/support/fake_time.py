"""The time of cooldowns and retries, moved by the test instead of the clock."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import tenacity

from otterwiki_semantic.core import backoff
from otterwiki_semantic.embedding.remote import retry


class FakeTime:
    """Stands still at `now`; pauses before a retry are as long as they can be, and noted in `pauses` instead of made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=self.pauses.append)
        for module in (backoff, retry, tenacity, tenacity.nap):
            monkeypatch.setattr(module, "time", clock)
        set_jitter(monkeypatch, share=1)


class Clock:
    """A time that the test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def set_jitter(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """Make every pause before a retry this share of its longest."""
    monkeypatch.setattr(tenacity.wait, "random", SimpleNamespace(uniform=lambda _, longest: share * longest))
