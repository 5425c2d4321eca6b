from __future__ import annotations

import pytest

from otterwiki_semantic.core.backoff import Backoff, Cooldown


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_cooldown_is_not_active_before_it_is_started(clock: Clock) -> None:
    assert not Cooldown(30, clock).is_active
    assert Cooldown(30, clock).remaining == 0


def test_a_cooldown_is_active_until_its_seconds_are_over(clock: Clock) -> None:
    cooldown = Cooldown(30, clock)
    cooldown.start(10)
    clock.now = 9.5
    assert cooldown.is_active
    assert cooldown.remaining == 0.5
    clock.now = 10
    assert not cooldown.is_active
    assert cooldown.remaining == 0


def test_a_cooldown_lasts_as_long_as_it_was_made_for_unless_told_otherwise(clock: Clock) -> None:
    cooldown = Cooldown(30, clock)
    cooldown.start()
    assert cooldown.remaining == 30
    cooldown.start(5)
    assert cooldown.remaining == 5


def test_a_cooldown_of_no_seconds_is_over_at_once(clock: Clock) -> None:
    cooldown = Cooldown(30, clock)
    cooldown.start(0)
    assert not cooldown.is_active


def test_a_cooldown_that_is_started_again_forgets_the_last_pause(clock: Clock) -> None:
    cooldown = Cooldown(30, clock)
    cooldown.start(100)
    cooldown.start(1)
    assert cooldown.remaining == 1
    cooldown.stop()
    assert not cooldown.is_active


def test_a_cooldown_takes_the_time_of_the_machine_unless_it_is_given_a_clock() -> None:
    cooldown = Cooldown(30)
    cooldown.start(3600)
    assert 3590 < cooldown.remaining <= 3600


def test_pauses_double_up_to_the_longest(clock: Clock) -> None:
    backoff = Backoff(60, 300, clock)
    assert backoff.is_due
    assert [backoff.failed() for _ in range(5)] == [60, 120, 240, 300, 300]


def test_the_next_attempt_is_due_when_the_pause_is_over(clock: Clock) -> None:
    backoff = Backoff(60, 300, clock)
    backoff.failed()
    clock.now = 59
    assert not backoff.is_due
    clock.now = 60
    assert backoff.is_due
    backoff.failed()
    clock.now = 179
    assert not backoff.is_due


def test_a_success_begins_anew(clock: Clock) -> None:
    backoff = Backoff(60, 300, clock)
    backoff.failed()
    backoff.failed()
    backoff.reset()
    assert backoff.is_due
    assert backoff.failed() == 60


def test_one_failure_can_have_a_limit_of_its_own(clock: Clock) -> None:
    backoff = Backoff(60, 3600, clock)
    assert [backoff.failed(longest=100) for _ in range(3)] == [60, 100, 100]
    assert backoff.failed() == 200
