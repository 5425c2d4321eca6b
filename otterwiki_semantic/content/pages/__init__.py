"""Pages: their names, titles, outlines, links and edits."""

from otterwiki_semantic.content.pages.edits import append_after, count_occurrences, normalize_newlines, saved_text, unified_diff
from otterwiki_semantic.content.pages.links import page_key, resolve_link
from otterwiki_semantic.content.pages.notes import as_wiki_text, namespaced
from otterwiki_semantic.content.pages.page import (
    FRONT_MATTER,
    check_not_excluded,
    find_page,
    page_excluded,
    page_indexing,
    page_name,
    page_not_found,
    parent_path,
)
from otterwiki_semantic.content.pages.preparation import (
    PageSettings,
    divide_page,
    page_words,
    parse_source,
    prepare_page,
    title_and_path_words,
)
from otterwiki_semantic.content.pages.source import find_links, find_name, prose, redirect_links
from otterwiki_semantic.content.pages.view import view_page
