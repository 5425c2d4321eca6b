"""Pages: their names, titles, outlines and links."""

from otterwiki_semantic.content.pages.links import page_key, resolve_link
from otterwiki_semantic.content.pages.outline import find_section, full_names, outline, short_names
from otterwiki_semantic.content.pages.page import page_name, page_not_found, page_title, page_word_count, read_page

__all__ = [
    "find_section",
    "full_names",
    "outline",
    "page_key",
    "page_name",
    "page_not_found",
    "page_title",
    "page_word_count",
    "read_page",
    "resolve_link",
    "short_names",
]
