"""Parse markdown as the wiki does: sections, headings with their anchors, plain text, links, front matter."""

from otterwiki_semantic.content.markdown.front_matter import json_safe
from otterwiki_semantic.content.markdown.parser import parse_markdown, parse_plain_text

__all__ = ["json_safe", "parse_markdown", "parse_plain_text"]
