"""The Markdown of a passage can be read by itself: nothing in it is cut where it would lose its meaning."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.content.markdown import passage_markdown, truncate_markdown, unpadded_tables

PAGE = """\
# Restore

To get a file back:

1. Look for it:

   ```bash
   restic snapshots
   restic find taxes
   ```

2. Fetch it.

## What is kept

These are kept for a while:

| kind | kept |
| --- | --- |
| nightly | 14 |
| weekly | 8 |

Then nothing. Really nothing.

~~~text
one
# no heading
two
~~~
The end.
"""
LINES = PAGE.splitlines()
BLOCKS = st.lists(st.sampled_from([*PAGE.split("\n\n"), "```\nopen", "- a\n- b", "words " * 40]), max_size=8).map("\n\n".join)


def at(text: str) -> int:
    return next(number for number, line in enumerate(LINES, 1) if text in line)


def has_open_fence(text: str) -> bool:
    mark = ""
    for line in text.splitlines():
        found = re.match(r"\s*(?:\d+\.\s+|-\s+)?(`{3,}|~{3,})", line)
        if not mark and found:
            mark = found[1]
        elif mark and line.strip().startswith(mark) and not line.strip().strip(mark[0]):
            mark = ""
    return bool(mark)


def test_a_line_of_code_brings_its_list_and_what_announces_it() -> None:
    found = passage_markdown(PAGE, at("restic find"), at("restic find"))
    assert found.text.startswith("To get a file back:")
    assert found.text.endswith("2. Fetch it.")
    assert (found.start_line, found.end_line) == (at("To get"), at("2. Fetch"))


def test_a_sentence_brings_what_it_announces() -> None:
    found = passage_markdown(PAGE, at("These are"), at("These are"))
    assert found.text.endswith("| weekly | 8 |")


def test_what_looks_like_a_heading_in_code_is_none() -> None:
    found = passage_markdown(PAGE, at("Then nothing"), at("Then nothing"), section_words=60)
    assert found.text.startswith("## What is kept")
    assert found.text.endswith("The end.")


def test_a_long_table_is_cut_below_its_head_and_long_code_between_fences() -> None:
    table = "| a | b |\n|---|---|\n" + "\n".join(f"| {row} | x |" for row in range(100))
    assert passage_markdown(table, 50, 51).text == "| a | b |\n|---|---|\n| 47 | x |\n| 48 | x |"
    code = "```python\n" + "\n".join(f"line({row})" for row in range(100)) + "\n```"
    assert passage_markdown(code, 50, 51).text == "```python\nline(48)\nline(49)\n```"


def test_a_small_section_is_returned_whole_and_a_large_one_is_not() -> None:
    assert passage_markdown(PAGE, at("nightly"), at("nightly"), section_words=100).text.startswith("## What is kept")
    assert passage_markdown(PAGE, at("nightly"), at("nightly"), section_words=10).text.startswith("These are kept")


@given(BLOCKS, st.integers(1, 60), st.integers(0, 20), st.integers(0, 900))
def test_no_code_is_left_open_and_nothing_is_announced_in_vain(page: str, start: int, more: int, size: int) -> None:
    passage = passage_markdown(page, start, start + more)
    cut = truncate_markdown(passage.text, size)
    assert len(cut) <= size or cut == passage.text.rstrip()
    for text in (passage.text, cut):
        assert not has_open_fence(text)
    last = cut.rstrip().splitlines()[-1:] if len(cut) < len(passage.text.rstrip()) else []
    assert not any(line.endswith(":") or line.startswith("#") for line in last) or "```" in cut or "~~~" in cut


def test_a_paragraph_is_cut_after_a_sentence() -> None:
    text = "The first sentence is here. The second one follows it. " * 20
    assert truncate_markdown(text, 100) == "The first sentence is here. The second one follows it. The first sentence is here."


def test_a_table_without_padding_means_the_same() -> None:
    code = "```\n| a    | ------ |\n```\n\n"
    table = code + "| a    |    b --x |\n| ---- | :----: |\n|      | `c  d -----`   |"
    assert unpadded_tables(table) == code + "| a | b --x |\n| --- | :---: |\n|  | `c  d -----` |"
