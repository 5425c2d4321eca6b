"""Pages in lists and as read. Lines are 1-based and inclusive."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from msgspec import Struct

from otterwiki_semantic.core.records.document import FileKind
from otterwiki_semantic.core.records.status import Freshness

_SAFE_IN_PATH = "!$&'()*+,/:;=@"
_SAFE_IN_ANCHOR = "%!#$&'()*+,/:;=?@"
"""What Flask's `url_for` does not escape."""
_NOT_IN_LINKS = frozenset("[]|\n")


_VIEWS = {
    *("attachments", "blame", "delete", "draft", "edit", "history", "inline_attachment", "preview", "rename", "save"),
    *("source", "view"),
}
"""Ends of the wiki's own addresses; a page of such a name is shown with its extension only."""


class PageUrls(Struct, frozen=True):
    """The addresses of the wiki's pages, which start with `prefix`; without one they are left out."""

    prefix: str | None = None
    retains_case: bool = True
    """The wiki's RETAIN_PAGE_NAME_CASE; if false it looks for a file in lower case, whatever the address."""
    links_begin_with_page: bool = False
    """The wiki's WIKILINK_STYLE: ``[[page|text]]`` instead of ``[[text|page]]``."""

    def shows(self, path: str, kind: str | None = None) -> bool:
        """Whether the wiki can show a page, or an attached file of a kind, whose name is case-sensitive."""
        shown = path.rpartition("/")[0] if kind else path
        return self.retains_case or shown == shown.lower()

    def of(self, path: str, anchor: str = "", kind: str | None = None) -> str | None:
        """Return the address of a page or heading, or of an attached file or PDF page; None if the wiki cannot show it."""
        if self.prefix is None or not self.shows(path, kind):
            return None
        folder, _, name = path.rpartition("/")
        path += ".md" if folder and name in _VIEWS and not kind else ""
        anchor = anchor if kind in {None, FileKind.PDF} else ""
        fragment = f"#{quote(anchor, safe=_SAFE_IN_ANCHOR)}" if anchor else ""
        return f"{self.prefix}{quote(path, safe=_SAFE_IN_PATH)}{fragment}"

    def link(self, path: str, text: str = "", kind: str | None = None) -> str | None:
        """Return a link to a page in wiki syntax; None if the wiki cannot show the page, or its name cannot be linked."""
        text = " ".join(text.split()) or path
        if kind:
            return None if _NOT_IN_LINKS & {*text} else f"[{text}](/{quote(path)})"
        if self.prefix is None or not self.shows(path) or _NOT_IN_LINKS & {*path, *text} or "#" in path:
            return None
        if text == path:
            return f"[[{path}]]"
        return f"[[{path}|{text}]]" if self.links_begin_with_page else f"[[{text}|{path}]]"


NO_URLS = PageUrls()


class NamedPage(Struct, frozen=True, omit_defaults=True):
    """What records of a page begin with."""

    name: str
    """The last part of the page's path."""
    path: str
    """The page's path in the wiki."""
    title: str
    """The front matter's title, else the first heading of level 1, else the name."""


class ListedPage(NamedPage, frozen=True):
    """A page in a list."""

    category: str | None
    """From the front matter."""
    tags: tuple[str, ...]
    """From the front matter."""
    updated: str | None
    """When a commit last changed the page, ISO 8601 in UTC."""
    word_count: int
    """Words of the page."""
    last_updated: str | None
    """The day of `updated`."""
    content_length: int
    """The same as `word_count`, under another plugin's name."""
    url: str | None = None
    """The page in the wiki."""
    kind: FileKind | None = None
    """Only of an attached file: what it is."""


class PageList(Struct, frozen=True):
    """Some of the pages asked for."""

    pages: tuple[ListedPage, ...]
    total: int
    """The number of pages that pass the filters, listed or not."""
    index: Freshness


class PageLinks(Struct, frozen=True):
    """The links between a page and others that exist, as the index has them; both in order."""

    links_to: tuple[str, ...]
    """Paths of the pages it links to."""
    linked_from: tuple[str, ...]
    """Paths of the pages that link to it."""


class Commit(Struct, frozen=True):
    """A commit that changed a page."""

    revision: str
    author: str
    date: str
    """ISO 8601."""
    message: str


class PageHistory(Struct, frozen=True):
    """The last commits that changed a page, the latest first."""

    path: str
    commits: tuple[Commit, ...]


class OutlineEntry(Struct, frozen=True):
    """A section with all its subsections, as a table of contents shows it."""

    heading: str
    level: int
    """1 to 6; 0 for the text before the first heading."""
    path: tuple[str, ...]
    """The headings from the outermost to this one."""
    anchor: str
    """The heading's id in the page."""
    start_line: int
    end_line: int
    word_count: int
    name: str = ""
    """What identifies this section within the page: its heading, with those above it where others have the same."""


class PagePart(Struct, frozen=True):
    """A section or some lines of a page."""

    section: str
    """The innermost heading above it."""
    section_path: tuple[str, ...]
    anchor: str
    start_line: int
    end_line: int
    word_count: int
    content: str


class PageView(NamedPage, frozen=True):
    """A page as it is read, whole or in parts. Its path is that of its file, whatever the case it was asked for in."""

    content: str
    """The page's markdown, front matter included; with `section` or `lines` that of `parts`."""
    frontmatter: dict[str, Any] | None
    """The front matter's values; what JSON has no type for is text. Null: none."""
    revision: str
    """The last commit that changed the page."""
    last_commit: Commit | None
    links_to: tuple[str, ...]
    """Paths of the pages it links to, as the index has it now."""
    linked_from: tuple[str, ...]
    """Paths of the pages that link to it, as the index has it now."""
    word_count: int
    """Words of the whole page."""
    total_lines: int
    """Lines of the whole page."""
    sections: tuple[OutlineEntry, ...]
    """The page's sections, each with all its subsections; the text before the first heading has level 0."""
    parts: tuple[PagePart, ...] | None = None
    """With `section` or `lines`: what was asked for, in this order."""
    degraded: str | None = None
    """Only if the index cannot tell the page's links: why."""
    url: str | None = None
    """The page in the wiki."""
    kind: FileKind | None = None
    """Only of an attached file: what it is. Its `content` is the file as Markdown, with a comment before each page."""
