"""The kinds of attached files: supported kinds, kinds readable with this installation, and kinds to index."""

from __future__ import annotations

import posixpath
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

from otterwiki_semantic.core.records import FileKind
from otterwiki_semantic.core.settings import Settings

_TEXT = "txt text log rst adoc asciidoc org tex bib csv tsv srt vtt"
_CODE = (
    "py pyi js mjs ts tsx jsx java kt kts scala groovy c h cc cpp hpp cs go rs rb php pl pm lua r jl swift m mm dart ex exs erl"
    " hs ml fs clj lisp el vim sh bash zsh fish ps1 bat cmd sql graphql proto css scss less vue svelte json jsonl yaml yml toml"
    " ini cfg conf properties env tf hcl nix cmake gradle mk diff patch xml xsd dtd svg"
)
_EXTENSIONS = {
    FileKind.PDF: "pdf",
    FileKind.WORD: "docx odt rtf",
    FileKind.SLIDES: "pptx odp",
    FileKind.SHEET: "xlsx ods",
    FileKind.BOOK: "epub",
    FileKind.HTML: "html htm xhtml",
    FileKind.MAIL: "eml",
    FileKind.NOTEBOOK: "ipynb",
    FileKind.TEXT: _TEXT,
    FileKind.CODE: _CODE,
    FileKind.IMAGE: "png jpg jpeg tif tiff webp",
}
KIND_OF_EXTENSION: Mapping[str, FileKind] = {
    extension: kind for kind, extensions in _EXTENSIONS.items() for extension in extensions.split()
}
_OFFICE = (FileKind.WORD, FileKind.SLIDES, FileKind.SHEET, FileKind.BOOK)
_DOCUMENTS = frozenset((FileKind.PDF, *_OFFICE, FileKind.MAIL, FileKind.IMAGE))
"""The kinds that are indexed in a folder unless the setting has globs: not the source code of a project."""
_TESSERACT_SECONDS = 30
_MODULES = {FileKind.PDF: "pypdfium2", **dict.fromkeys(_OFFICE, "kreuzberg")}


def file_kind(path: str) -> FileKind | None:
    """Return the kind of a file by its extension, or None if it cannot be indexed."""
    return KIND_OF_EXTENSION.get(posixpath.splitext(path)[1][1:].lower())


@cache
def missing_kinds() -> frozenset[FileKind]:
    """Return the kinds for which this installation lacks a library."""
    return frozenset(kind for kind, module in _MODULES.items() if find_spec(module) is None)


@cache
def tesseract_languages() -> frozenset[str]:
    """Return the languages that Tesseract can read; none if it is not installed."""
    command = ("tesseract", "--list-langs")
    try:
        listed = subprocess.check_output(command, stderr=subprocess.STDOUT, timeout=_TESSERACT_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return frozenset()
    return frozenset(listed.decode(errors="replace").splitlines())


@dataclass(frozen=True, slots=True)
class AttachmentRule:
    """Selects the attached files to index. In a wiki, a file is attached to the page whose path is the file's folder."""

    kinds: frozenset[FileKind] = frozenset()
    globs: tuple[str, ...] = ()
    """Git globs. A file must match one, unless there are none."""
    lacking: frozenset[FileKind] = frozenset()
    """Kinds that would be indexed if their library were installed."""
    ocr: str | None = None
    """The languages in which Tesseract reads images: the installed ones of the setting."""
    is_folder: bool = False
    """Whether files need no page that they are attached to."""

    def kind_of(self, path: str) -> FileKind | None:
        """Return the kind of a file that may be indexed, or None, whether or not the globs match."""
        kind = file_kind(path) if self.is_folder or "/" in path else None
        return kind if kind in self.kinds else None

    @property
    def key(self) -> tuple[str, ...]:
        """A key that changes whenever other files may be indexed, or the same files with another text."""
        return *sorted(self.kinds), *self.globs, *([f"ocr={self.ocr}"] if self.ocr else [])


NO_ATTACHMENTS = AttachmentRule()


def attachment_rule(settings: Settings, *, is_folder: bool = False) -> AttachmentRule:
    """Return the rule for the settings and the installed libraries, in a wiki or in a folder of notes."""
    wanted = settings.attachments
    if wanted is False:
        return NO_ATTACHMENTS
    installed = [each for each in settings.ocr.split("+") if each in tesseract_languages()] if settings.ocr else []
    ocr = "+".join(installed) or None
    kinds = _DOCUMENTS if is_folder and wanted is True else frozenset(FileKind)
    kinds -= missing_kinds() | (set() if ocr else {FileKind.IMAGE})
    return AttachmentRule(kinds, () if wanted is True else wanted, missing_kinds(), ocr, is_folder)
