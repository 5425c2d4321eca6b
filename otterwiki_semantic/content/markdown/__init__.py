"""Markdown as the wiki reads it: sections, headings with their anchors, plain text, links, front matter."""

from otterwiki_semantic.content.markdown.front_matter import plain_values
from otterwiki_semantic.content.markdown.parser import parse, parse_plain

__all__ = ["parse", "parse_plain", "plain_values"]
