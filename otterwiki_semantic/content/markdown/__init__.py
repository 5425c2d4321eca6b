"""Parse Markdown as the wiki does: sections, headings with their anchors, plain text, links, front matter."""

from otterwiki_semantic.content.markdown.parser import parse_markdown as parse_markdown
from otterwiki_semantic.content.markdown.parser import parse_plain_text as parse_plain_text
from otterwiki_semantic.content.markdown.parser import parse_seconds as parse_seconds
from otterwiki_semantic.content.markdown.parser import read_front_matter as read_front_matter
from otterwiki_semantic.content.markdown.passage import PassageMarkdown as PassageMarkdown
from otterwiki_semantic.content.markdown.passage import is_table_rule as is_table_rule
from otterwiki_semantic.content.markdown.passage import passage_markdown as passage_markdown
from otterwiki_semantic.content.markdown.passage import truncate_markdown as truncate_markdown
from otterwiki_semantic.content.markdown.plain_text import STRUCK as STRUCK
from otterwiki_semantic.content.markdown.plain_text import slug as slug
