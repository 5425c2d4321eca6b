"""What a reader sees of Markdown."""

from __future__ import annotations

import pytest

from otterwiki_semantic.search.answering.plain import plain_text, visible_markdown


@pytest.mark.parametrize(
    ("markdown", "seen"),
    [
        ("~~Kept 30 days.~~ Kept 90 days.", " Kept 90 days."),
        ("<del class='x'>Kept 30 days.</del> <s>no</s>Yes", " Yes"),
        ("a\n\n<!-- draft\n\nThe code is 4711.\n\n-->\n\nb", "a\n\n\n\nb"),
        ("a <!-- cut off at the end of a passage", "a "),
        (
            "- [ ] The wall is up\n- [x] The gate is up\n  1. [ ] deeper",
            "- ☐ The wall is up\n- [x] The gate is up\n  1. ☐ deeper",
        ),
        ("`~~kept~~` and `<!-- kept -->`", "`~~kept~~` and `<!-- kept -->`"),
        ("```\n<!-- kept -->\n~~kept~~\n```\n~~gone~~", "```\n<!-- kept -->\n~~kept~~\n```\n"),
        ("~~~\n<del>kept</del>\n", "~~~\n<del>kept</del>\n"),
        ("~~Bob has\nthe key.~~ Ada has it.", " Ada has it."),
        ("~~of one\n\nand another~~", "~~of one\n\nand another~~"),
        (f"<del>{'long ' * 400}</del>Ada has it.", "Ada has it."),
        ("costs ~5 or ~~ 6", "costs ~5 or ~~ 6"),
        ("<script>x</script> <sample>y</sample>", "<script>x</script> <sample>y</sample>"),
    ],
)
def test_what_is_taken_back_is_not_there(markdown: str, seen: str) -> None:
    assert visible_markdown(markdown) == seen


def test_a_hostile_text_takes_no_time_to_speak_of() -> None:
    for text in ("<!--" * 20_000, "~~a" * 20_000, "<del>" * 20_000, "`" * 20_000, "```\n" * 20_000, "<s " * 20_000):
        visible_markdown(text[:60_000])


@pytest.mark.parametrize("sign", ["R&D", "R&amp;D", "R &lt; D"])
def test_code_is_kept_beside_character_references(sign: str) -> None:
    assert plain_text(f"Keep `30` tape copies of {sign} data, then run `restic prune`.").startswith("Keep 30 tape copies of R")
    assert plain_text(f"{sign}: run `restic prune`").endswith("run restic prune")
