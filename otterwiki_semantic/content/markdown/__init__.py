"""Parse Markdown as the wiki does: sections, headings with their anchors, plain text, links, front matter."""

from otterwiki_semantic.content.markdown.parser import parse_markdown, parse_plain_text, parse_seconds, read_front_matter
from otterwiki_semantic.content.markdown.passage import (
    PassageMarkdown,
    fenced_lines,
    is_table_rule,
    passage_markdown,
    row_cells,
    truncate_markdown,
    unpadded_tables,
)
from otterwiki_semantic.content.markdown.plain_text import MARKUP, STRUCK, slug
