"""Hypothesis strategies: pages of markdown, from tidy to absurd."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = st.text(alphabet="abcdefghijklmnopqrstuvwxyzäöüß0123456789", min_size=1, max_size=9)
LINE = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
PARAGRAPH = st.lists(LINE.map(lambda line: line.capitalize() + "."), min_size=1, max_size=12).map(" ".join)
HEADING = st.builds(lambda level, text: f"{'#' * level} {text}", st.integers(1, 6), LINE)
SETEXT = st.builds(lambda text, mark: f"{text}\n{mark}", LINE, st.sampled_from(["===", "---"]))
CODE = st.lists(LINE | LINE.map(lambda line: f"# {line}"), min_size=1, max_size=30).map(
    lambda lines: "```python\n" + "\n".join(lines) + "\n```"
)
LIST = st.lists(LINE, min_size=1, max_size=20).map(lambda lines: "\n".join(f"- {line}" for line in lines))
NESTED = st.builds(lambda a, b, c: f"1. {a}\n   - {b}\n\n     {c}\n2. {b}", LINE, LINE, LINE)
TABLE = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=20).map(
    lambda rows: "| x | y |\n|---|---|\n" + "\n".join(f"| {a} | {b} |" for a, b in rows)
)
QUOTE = st.lists(LINE, min_size=1, max_size=4).map(lambda lines: "\n".join(f"> {line}" for line in lines))
LINK = st.builds(lambda text, target: f"see [{text}](https://example.org/{target}) there", LINE, WORDS)
BOX = st.builds(lambda title, text: f"::: info\n# {title}\n{text}\n:::", LINE, LINE)
FOLD = st.builds(lambda title, text: f">| # {title}\n>| {text}", LINE, LINE)
HTML = st.builds(lambda text: f"<div>\n<p>{text}</p>\n</div>", LINE)
BLOCK = st.one_of(PARAGRAPH, HEADING, HEADING, SETEXT, CODE, LIST, NESTED, TABLE, QUOTE, LINK, BOX, FOLD, HTML)
PAGES = st.lists(BLOCK, max_size=14).map("\n\n".join)

BLOCK_MARKUP = ["#", "##", "\n", "\n\n", "```", "~~~", ">", "-", "1.", "|", "|-|", "---", "===", "<!--", "-->", "$$", ":::"]
INLINE_MARKUP = ["[", "](", ")", "<", ">", "{{", "}}", "[[", "]]", "*", "_", "`", "\\", "&amp;", "\t", "word", "漢字", "\x00"]
MARKUP = st.sampled_from([*BLOCK_MARKUP, *INLINE_MARKUP, " ", "    ", "\u3000"])
RAW = st.one_of(st.text(max_size=400), st.lists(MARKUP, max_size=120).map("".join))
