"""Synonyms of a query."""

from __future__ import annotations

import pytest

from otterwiki_semantic.search.expansion import read_synonyms, with_synonyms

PAGE = """# Our words

Each line below holds words that mean the same to us, and a query with one of them is also asked with the others.

- pto, annual leave, vacation
* `k8s`, Kubernetes
NAS => file server, storage box
wifi,

```
inside, code
```

    indented, code
"""


@pytest.mark.parametrize(
    ("query", "variants"),
    [
        ("how much PTO", ["how much annual leave", "how much vacation"]),
        ("annual leave in May", ["pto in May", "vacation in May"]),
        ("vacations", ["pto", "annual leave"]),
        ("annual report", []),
        ("kubernetes upgrade", ["k8s upgrade"]),
        ("the nas is full", ["the file server is full", "the storage box is full"]),
        ("file server", []),
        ('"pto" rules', []),
        ("rules -pto", []),
        ("wifi", []),
        ("inside", []),
        ("indented", []),
        ("each line", []),
        ("pto k8s", ["annual leave k8s", "vacation k8s", "pto Kubernetes"]),
        ("", []),
    ],
)
def test_a_query_is_also_asked_with_the_other_words_of_a_group(query: str, variants: list[str]) -> None:
    assert list(with_synonyms(query, read_synonyms(PAGE))) == variants


def test_there_are_at_most_six_variants() -> None:
    synonyms = read_synonyms(", ".join(f"word{letter}" for letter in "abcdefghijk"))
    assert list(with_synonyms("worda", synonyms)) == [f"word{letter}" for letter in "bcdefg"]


@pytest.mark.parametrize("text", ["", "\0", "a, a, A", "=>", "a =>", "=> b", ",,,", "a, " * 100_000, "- \n" * 1000, "東京, 京"])
def test_odd_pages_have_no_groups_but_raise_no_error(text: str) -> None:
    assert with_synonyms("a b c 東京", read_synonyms(text)) == ()
