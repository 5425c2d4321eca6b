"""No secret in an error message."""

from __future__ import annotations

from otterwiki_semantic.core.redact import redact


def test_what_is_said_is_quoted_in_one_line_without_secrets() -> None:
    assert redact("out of\n memory", ()) == "out of memory"
    assert redact('wrong key a\\"b', ('a"b', None)) == "wrong key …"
    assert len(redact("word " * 1000, ())) == 200
    assert redact("the input of nineteen chars", (), ["the input of ninete!", "abc"]) == "the input of nineteen chars"
    assert redact("the input of nineteen chars", (), ["at the input of nineteen"]) == ""
    assert redact("a pump", (), ["pump"]) == ""
