"""Pages: their names, titles, outlines, links and edits."""

from otterwiki_semantic.content.pages.edits import append_after as append_after
from otterwiki_semantic.content.pages.edits import count_occurrences as count_occurrences
from otterwiki_semantic.content.pages.edits import normalize_newlines as normalize_newlines
from otterwiki_semantic.content.pages.edits import saved_text as saved_text
from otterwiki_semantic.content.pages.edits import unified_diff as unified_diff
from otterwiki_semantic.content.pages.links import page_key as page_key
from otterwiki_semantic.content.pages.links import resolve_link as resolve_link
from otterwiki_semantic.content.pages.outline import outline as outline
from otterwiki_semantic.content.pages.page import FRONT_MATTER as FRONT_MATTER
from otterwiki_semantic.content.pages.page import check_not_excluded as check_not_excluded
from otterwiki_semantic.content.pages.page import find_page as find_page
from otterwiki_semantic.content.pages.page import page_excluded as page_excluded
from otterwiki_semantic.content.pages.page import page_indexing as page_indexing
from otterwiki_semantic.content.pages.page import page_name as page_name
from otterwiki_semantic.content.pages.page import page_not_found as page_not_found
from otterwiki_semantic.content.pages.page import read_page as read_page
from otterwiki_semantic.content.pages.preparation import PageSettings as PageSettings
from otterwiki_semantic.content.pages.preparation import divide_page as divide_page
from otterwiki_semantic.content.pages.preparation import page_words as page_words
from otterwiki_semantic.content.pages.preparation import prepare_page as prepare_page
from otterwiki_semantic.content.pages.source import find_links as find_links
from otterwiki_semantic.content.pages.source import find_name as find_name
from otterwiki_semantic.content.pages.source import prose as prose
from otterwiki_semantic.content.pages.view import view_page as view_page
