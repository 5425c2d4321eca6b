"""Tokens that are counted word by word are those that the tokenizer finds in the whole text."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.embedding.local.bundled import BundledModel, estimate_tokens, estimating_counter

MODEL = BundledModel()
PIECES = (
    *("otter", "Otters", "TargetWords", "x" * 120, "10.0.0.5", "[SEP]", "[CLS", "C++", "don't", "…", "Ärger", "日本語"),
    *("İ", "ΣΑΣ", "🦦", " ", "  ", "\n", "\t", "\r", "\v", "\f", "\x1c", "\x85", "\xa0", "\u3000", "\u200b", "\u0301"),
    *("\ufeff", "\ufffd", "\0"),
)
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join))


@given(st.lists(TEXTS, max_size=5))
def test_words_have_as_many_tokens_as_their_text(texts: list[str]) -> None:
    assert MODEL.word_counter.count_tokens(texts) == MODEL.count_tokens(texts)
    assert estimating_counter().count_tokens(texts) == estimate_tokens(texts)


def test_a_counter_can_be_sent_to_another_process() -> None:
    counter = pickle.loads(pickle.dumps(MODEL.word_counter))
    assert counter.count_tokens(["otter pup", ""]) == MODEL.count_tokens(["otter pup", ""])
