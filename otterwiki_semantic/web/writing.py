"""Save pages for programs: through the wiki, with its permissions, file names and hooks, as its editor does.

Errors: `ApiError`, `ParameterError`, `PageChangedError`, `PageNotFoundError`, errors of git.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import git
from flask import current_app, session
from flask_login import current_user
from msgspec import structs
from werkzeug.exceptions import HTTPException

from otterwiki_semantic.content.pages import append_after, count_occurrences, normalize_newlines, saved_text, unified_diff
from otterwiki_semantic.core.errors import PageChangedError, PageExcludedError, PageNotFoundError, ParameterError, SemanticError
from otterwiki_semantic.core.files import locked, make_private
from otterwiki_semantic.core.parameter_parsing import page_path
from otterwiki_semantic.core.records import (
    DeletedPage,
    DeleteRequest,
    EditRequest,
    Mode,
    PageRequest,
    PageView,
    SearchContext,
    SearchOptions,
    WriteRequest,
    WrittenPage,
)
from otterwiki_semantic.core.settings import MAX_PAGE_BYTES
from otterwiki_semantic.web.auth import act_as_author
from otterwiki_semantic.web.errors import ApiError
from otterwiki_semantic.web.extension import extension
from otterwiki_semantic.web.pages.layout import page_urls

_LOCK = "writing.lock"
_MAX_DIFF = 20_000
_MAX_SEGMENT_BYTES = 200
"""For a name in a path; file systems allow 255 bytes, and the wiki appends an extension."""
_INDEX_SECONDS = 5.0
_LOCK_SECONDS = 10.0
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
"""Control characters that are invalid in text; page breaks occur in some texts and are allowed."""
_NOT_IN_AN_AUTHOR = re.compile(r"[\x00-\x1f<>]")
_AROUND_AN_AUTHOR = " .,:;\"'\\"
_DRIVE = re.compile(r"[A-Za-z]?:")
"""The beginning of a path that GitPython mistakes for a Windows path, or git for a pattern."""
_RELATED = 3

log = logging.getLogger(__name__)


def write(path: str, asked: WriteRequest) -> WrittenPage:
    """Create a page or, with the revision that the text is based on, replace it."""
    path = _checked(path)
    _check_characters(text=asked.text)
    with _alone():
        before: PageView | None = None
        with suppress(PageNotFoundError):
            before = _existing(path)
        if before is not None:
            if saved_text(asked.text) == before.content:
                return _settled(_written(before, before))  # as after a lost answer
            if asked.revision is None:
                raise ApiError("page_exists", f"there is a page {before.path!r} already; send its revision to replace it")
            _check_revision(before, asked.revision)
        elif asked.revision is not None:
            raise PageNotFoundError(f"the wiki has no page {path!r} to replace", ())
        written = _save(before, path, asked.text, asked.message)
    return _settled(written)


def edit(path: str, asked: EditRequest) -> WrittenPage:
    """Replace a text that occurs exactly once on a page, or append one to the page or to a section."""
    path = _checked(path)
    _check_characters(new=asked.new, append=asked.append)
    with _alone():
        before = _existing(path)
        if asked.append is not None:
            if not asked.append.strip():
                raise ParameterError("append is empty; send the text to add")
            line = before.total_lines
            if asked.section is not None:
                (part,) = extension().pages.page(before.path, PageRequest(section=(asked.section,))).parts or ()
                line = part.end_line
            text = append_after(before.content, line, asked.append)
        else:
            _check_revision(before, asked.revision or "")
            text = _replaced(before.content, asked.old or "", asked.new or "")
        written = _save(before, path, text, asked.message)
    return _settled(written)


def delete(path: str, asked: DeleteRequest) -> DeletedPage:
    """Delete a page, without its subpages and attached files, if it is as in the revision."""
    path = _checked(path)
    with _alone():
        before = _existing(path)
        _check_revision(before, asked.revision)
        revision = _delete_in_wiki(before, asked.message)
    return DeletedPage(before.path, revision, indexed=_is_indexed())


def _checked(path: str) -> str:
    """Return the path of a page that may be written, and run the rest of the request as its author."""
    if not extension().settings.allow_write:
        raise ApiError(
            "writing_disabled", "programs may not write pages: the wiki's administrator can set SEMANTIC_ALLOW_WRITE"
        )
    act_as_author(extension().settings.write_as)
    path = page_path(path)
    names = path.split("/")
    is_file_name = all(
        name.isprintable()
        and name.strip() == name
        and not name.startswith(".")
        and len(name.encode("utf-8", "replace")) <= _MAX_SEGMENT_BYTES
        for name in names
    )
    if "" in names or not is_file_name or names[0] == "-" or "\\" in path:
        raise ParameterError(f"path is {path[:100]!r}, where no page can be saved")
    if _DRIVE.match(path):
        raise ParameterError(f"path is {path[:100]!r}; it must not begin with a colon, or a letter and a colon")
    if not _is_page_address(path):
        raise ParameterError(f"path is {path!r}, which is an address of the wiki itself")
    saved = page_path(_file_name(path))
    if saved != (path if current_app.config.get("RETAIN_PAGE_NAME_CASE") else path.lower()):
        raise ParameterError(f"path is {path!r}, which the wiki would save as {saved!r}")
    return path


@contextmanager
def _no_excluded(path: str) -> Iterator[None]:
    try:
        yield
    except PageExcludedError:
        raise ApiError("forbidden", f"the page {path!r} is excluded from search, and programs may not write it") from None


@contextmanager
def _alone() -> Iterator[None]:
    """Exclude other writers, in all workers of the wiki."""
    with ExitStack() as held:
        try:
            make_private(extension().settings.data_dir)
            held.enter_context(locked(extension().settings.data_dir / _LOCK, _LOCK_SECONDS))
        except TimeoutError as error:
            raise ApiError("write_failed", "another program is still writing; try again later") from error
        except OSError as error:
            raise ApiError("write_failed", f"the page could not be saved: data directory: {error.strerror}") from error
        yield


def _existing(path: str) -> PageView:
    with _no_excluded(path):
        return extension().pages.page(path, PageRequest())


def _check_revision(page: PageView, revision: str) -> None:
    if page.revision.startswith(revision.lower()):
        return
    earlier = extension().pages.page(page.path, PageRequest(revision=revision)).content
    if earlier == page.content:
        return
    diff = unified_diff(earlier, page.content, (revision[:12], page.revision[:12]))
    raise PageChangedError(
        f"the page {page.path!r} was changed since {revision[:12]}; read it again", page.revision, diff[:_MAX_DIFF]
    )


def _save(before: PageView | None, path: str, text: str, message: str) -> WrittenPage:
    text = saved_text(text)
    if not text.strip():
        raise ParameterError("the page would be empty; delete it instead")
    size = len(text.encode())
    if size > max(MAX_PAGE_BYTES, len(before.content.encode()) if before else 0):
        raise ParameterError(f"the page would have {size:,} bytes; at most {MAX_PAGE_BYTES:,} are searched")
    with _no_excluded(path):
        extension().pages.check_not_excluded(page_path(_file_name(path)), text)
    _save_in_wiki(before, path, text, message, extension().settings.repository)
    return _written(before, extension().pages.page(path, PageRequest()))


def _settled(written: WrittenPage) -> WrittenPage:
    """Return an answer once the index has the page, with related pages if it is new; or after some seconds."""
    written = structs.replace(written, indexed=_is_indexed())
    if written.created and written.indexed:
        with suppress(SemanticError):
            related = extension().index.related(written.path, _RELATED, page_urls()).results
            return structs.replace(written, related=related)
    return written


def _is_indexed() -> bool:
    """Wait some seconds until the index equals HEAD; return whether it does."""
    options = SearchOptions(n=1, mode=Mode.KEYWORD, wait=True, wait_seconds=_INDEX_SECONDS)
    with suppress(SemanticError):
        state = extension().index.search(["page"], options, context=SearchContext(is_logged=False))[0].index
        return state.commit == state.head
    return False


def _written(before: PageView | None, after: PageView) -> WrittenPage:
    changed = before is None or after.revision != before.revision
    return WrittenPage(after.path, after.revision, before is None, changed, indexed=False, url=page_urls().of(after.path))


def _check_characters(**texts: str | None) -> None:
    for name, text in texts.items():
        if found := _CONTROL.search(text or ""):
            raise ParameterError(f"{name} contains the control character {found[0]!r}")


def _replaced(text: str, old: str, new: str) -> str:
    """Return a text with `old`, which must match exactly once, replaced. Line endings are ignored."""
    text, old, new = normalize_newlines(text), normalize_newlines(old), normalize_newlines(new)
    count = count_occurrences(text, old)
    if count != 1:
        found = f"occurs {count} times in the page; include more of the text around it" if count else "is not in the page"
        raise ParameterError(f"old {found}")
    return text.replace(old, new)


def _wiki_page_class() -> Any:
    """Return the wiki's page class from the module that serves it: a process can have several wikis."""
    return current_app.view_functions["view"].__globals__["Page"]


def _is_page_address(path: str) -> bool:
    """Whether the wiki serves a page, and nothing else, at a path."""
    try:
        endpoint, _ = current_app.url_map.bind("localhost").match(f"/{path}", method="GET")
    except HTTPException:  # includes RequestRedirect
        return False
    return bool(endpoint == "view")


def _file_name(path: str) -> str:
    """Return the name of the file in which the wiki saves a page.

    The wiki's page class reads git, where threads must take turns; these functions do not.
    """
    wiki = _wiki_page_class().__init__.__globals__
    return str(wiki["get_filename"](wiki["sanitize_pagename"](path, handle_md=True)))


def _save_in_wiki(before: PageView | None, path: str, text: str, message: str, repository: Path) -> None:
    """Save a page as the wiki's editor does, but without deleting a draft, which belongs to a person who has not saved it."""
    page, storage = _page_in_wiki(before.path if before else path)
    file = repository.resolve() / page.filename
    if file.resolve() != file:
        raise ParameterError(f"path is {path!r}, which is a symbolic link, or in one")
    if before and page_path(page.filename) != before.path:
        raise ApiError("write_failed", f"the wiki would save {before.path!r} in {page.filename!r}; rename the page")
    if not before:
        _check_git_takes(storage, page.filename, path)
    in_file, in_git = page.content or "", before.content if before else ""
    if page.exists and not _is_same_text(in_file, in_git):
        if saved_text(in_file).strip() not in {"", text.strip()}:
            raise _not_committed()
        _unstage(storage, page.filename)  # left by an interrupted save
    page.discard_draft = lambda _author: None
    with _change("saved", page, storage, in_git if before else None):
        pattern = str(current_app.config.get("DEFAULT_COMMIT_MESSAGE") or "").replace("%P", page.pagename)
        message = message or time.strftime(pattern) or f"Update {page.pagename}"
        page.save(content=text, commit=message, author=_author())


def _delete_in_wiki(before: PageView, message: str) -> str:
    """Delete a page's file as the wiki does, and return the commit."""
    page, storage = _page_in_wiki(before.path)
    in_file = page.content or ""
    if page_path(page.filename) != before.path or not _is_same_text(in_file, before.content):
        raise _not_committed()
    with _change("deleted", page, storage, in_file):
        page.delete(message, _author(), recursive=False)
    return str(storage.repo.head.commit.hexsha)


@contextmanager
def _change(done: str, page: Any, storage: Any, before: str | None) -> Iterator[None]:
    """Change a page's file; restore the text that it had `before`, or remove it, if the change is not committed.

    The message that the wiki shows a person after a change is dropped.
    """
    blob = _blob(storage, page.filename)
    was_modified = session.modified
    try:
        yield
    except HTTPException:
        raise
    except Exception as error:  # of git, of the disk, of the wiki: their classes are not ours
        if _blob(storage, page.filename) != blob:
            log.exception("a page was %s, but what follows failed", done)
            return
        log.exception("a page could not be %s", done)
        file = Path(storage.path) / page.filename
        with suppress(OSError):
            if before is None:
                file.unlink(missing_ok=True)
            else:
                file.write_text(before, encoding="utf-8", newline="")
        _unstage(storage, page.filename)
        reason = f"the page could not be {done}: {type(error).__name__}; the wiki's log says why"
        raise ApiError("write_failed", reason) from error
    finally:
        session.pop("_flashes", None)
        session.modified = was_modified


def _page_in_wiki(path: str) -> tuple[Any, Any]:
    """Return the wiki's object for a page, and its storage."""
    page_class = _wiki_page_class()
    storage = page_class.__init__.__globals__["storage"]
    page = page_class(path)
    if not isinstance(storage.repo.odb, git.GitDB):  # otherwise GitPython's threads share a process, and can deadlock
        storage.repo = git.Repo(storage.path, odbt=git.GitDB)
    return page, storage


def _is_same_text(one: str, other: str) -> bool:
    return normalize_newlines(one).rstrip() == normalize_newlines(other).rstrip()


def _not_committed() -> ApiError:
    return ApiError("write_failed", "the page's file differs from git; commit it first")


def _author() -> tuple[str, str]:
    """Return the name and address of the author, without characters that git removes from its own and rejects in others."""
    if not current_user.is_authenticated:
        return "Anonymous", ""
    name, email = (
        _NOT_IN_AN_AUTHOR.sub("", text or "").strip(_AROUND_AN_AUTHOR) for text in (current_user.name, current_user.email)
    )
    return name or email or "Anonymous", email


def _check_git_takes(storage: Any, name: str, path: str) -> None:
    """Raise `ParameterError` if git ignores or rejects a file, such as one in a submodule."""
    try:
        is_ignored = bool(storage.repo.ignored(name))
    except git.GitCommandError as error:
        reason = str(error.stderr).strip().removeprefix("stderr: ").strip("' ")
        raise ParameterError(f"path is {path!r}, which git refuses: {reason}") from error
    if is_ignored:
        raise ParameterError(f"path is {path!r}, which git ignores")


def _blob(storage: Any, name: str) -> str | None:
    """Return the id of a file's blob in the last commit."""
    try:
        return str(storage.repo.git.rev_parse("-q", "--verify", f"HEAD:{name}"))
    except git.GitCommandError:
        return None


def _unstage(storage: Any, name: str) -> None:
    with suppress(Exception):  # a repository without a commit
        storage.repo.git(literal_pathspecs=True).reset("-q", "--", name)
