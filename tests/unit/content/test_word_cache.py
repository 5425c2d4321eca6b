"""What was computed of words is kept, as far as there is room."""

from __future__ import annotations

from unittest.mock import Mock, call

import pytest

from otterwiki_semantic.content.word_cache import WordCache


def test_a_word_is_computed_once() -> None:
    length = Mock(side_effect=len)
    cache = WordCache(length)
    assert [cache[word] for word in ("otter", "pup", "otter")] == [5, 3, 5]
    assert length.call_args_list == [call("otter"), call("pup")]


def test_long_words_are_not_kept() -> None:
    cache = WordCache(len)
    assert cache["o" * 1000] == 1000
    assert not cache


def test_the_words_of_late_survive_and_the_rest_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.content.word_cache._CACHED_WORDS", 10)
    length = Mock(side_effect=len)
    cache = WordCache(length)
    for number in range(100):
        assert cache["otter"] == 5
        assert cache[f"word{number}"] == len(f"word{number}")
    assert length.call_args_list.count(call("otter")) == 1
    assert cache["word0"] == 5
    assert length.call_args_list.count(call("word0")) == 2
    assert len(cache) + len(cache._before) <= 20
