from __future__ import annotations

from otterwiki_semantic.core.backoff import Cooldown


def test_a_cooldown_ends_by_time_or_when_it_is_reset() -> None:
    now = 100.0
    cooldown = Cooldown(30.0, lambda: now)
    assert not cooldown.is_active
    cooldown.start()
    now = 120.0
    assert (cooldown.is_active, cooldown.seconds_left) == (True, 10.0)
    now = 130.0
    assert (cooldown.is_active, cooldown.seconds_left) == (False, 0.0)
    cooldown.start()
    cooldown.reset()
    assert not cooldown.is_active
