"""An index that is built only to be compared leaves nothing behind, whatever it was doing."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Timer

import pytest

from otterwiki_semantic.cli.evaluate.scratch_index import interruptible, scratch_index
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.bundled import BundledModel


def test_a_step_that_takes_long_is_waited_for(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedding, may_go_on, has_gone_on = Event(), Event(), Event()
    embed = BundledModel.embed

    def slow(self: BundledModel, texts: Sequence[str]) -> Matrix:
        embedding.set()
        may_go_on.wait(30)
        has_gone_on.set()
        return embed(self, texts)

    def interrupt(_index: object) -> None:
        assert embedding.wait(30)
        Timer(0.5, may_go_on.set).start()
        raise KeyboardInterrupt

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("otterwiki_semantic.daemon.engine._CLOSE_SECONDS", 0.1)
    monkeypatch.setattr(BundledModel, "embed", slow)
    with pytest.raises(KeyboardInterrupt), scratch_index(settings, "minilm", interrupt):
        pass
    assert has_gone_on.is_set()
    assert list(tmp_path.glob("otterwiki-semantic-*")) == []


def test_an_interrupt_that_python_ignores_is_repeated() -> None:
    class InterruptedDestructor:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt), interruptible():
        Event().wait(60 if InterruptedDestructor() else 0)
