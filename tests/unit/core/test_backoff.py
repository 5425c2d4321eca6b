"""Pauses after failures, with the clock passed in."""

from __future__ import annotations

from otterwiki_semantic.core.backoff import Backoff, Cooldown
from tests.support.fake_time import Clock


def test_a_cooldown_is_active_from_its_start_until_its_seconds_are_over(clock: Clock) -> None:
    cooldown = Cooldown(30, clock)
    assert (cooldown.is_active, cooldown.remaining) == (False, 0)
    cooldown.start(10)
    clock.now = 9.5
    assert (cooldown.is_active, cooldown.remaining) == (True, 0.5)
    clock.now = 10
    assert (cooldown.is_active, cooldown.remaining) == (False, 0)


def test_a_cooldown_that_is_started_again_forgets_the_last_pause(clock: Clock) -> None:
    cooldown = Cooldown(30, clock)
    for seconds, remaining in ((None, 30), (100, 100), (5, 5), (0, 0), (1, 1)):
        cooldown.start(seconds)
        assert cooldown.remaining == remaining
    cooldown.stop()
    assert not cooldown.is_active


def test_pauses_double_up_to_the_longest_until_a_success(clock: Clock) -> None:
    backoff = Backoff(60, 300, clock)
    assert backoff.is_due
    assert [backoff.failed() for _ in range(5)] == [60, 120, 240, 300, 300]
    clock.now = 299
    assert not backoff.is_due
    clock.now = 300
    assert backoff.is_due
    backoff.failed()
    backoff.reset()
    assert backoff.is_due
    assert backoff.failed() == 60


def test_one_failure_can_have_a_limit_of_its_own(clock: Clock) -> None:
    backoff = Backoff(60, 3600, clock)
    assert [backoff.failed(longest=100) for _ in range(3)] == [60, 100, 100]
    assert backoff.failed() == 200
