"""Pages: their names, titles, outlines and links."""

from otterwiki_semantic.content.pages.links import page_key, target_of
from otterwiki_semantic.content.pages.outline import find_section, outline, short_names, shown_names
from otterwiki_semantic.content.pages.page import page_name, page_title, page_unknown, page_words, read_page

__all__ = [
    "find_section",
    "outline",
    "page_key",
    "page_name",
    "page_title",
    "page_unknown",
    "page_words",
    "read_page",
    "short_names",
    "shown_names",
    "target_of",
]
