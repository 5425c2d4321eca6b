"""Convert an attached file to Markdown. Runs only in a process with limits, because files may be malicious."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile

from otterwiki_semantic.content.attachments import markup
from otterwiki_semantic.content.attachments.ocr import image_to_markdown
from otterwiki_semantic.content.attachments.pdf import pdf_to_markdown
from otterwiki_semantic.core.errors import AttachmentError, LimitExceededError
from otterwiki_semantic.core.records import FileKind
from otterwiki_semantic.core.settings import MAX_PAGE_BYTES
from otterwiki_semantic.core.worker_process import forbid_network

MAX_FILE_BYTES = 50 << 20
_MAX_UNPACKED_BYTES, _MAX_MEMBERS = 200 << 20, 20_000
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_MICROSOFT = "application/vnd.openxmlformats-officedocument"
_OPEN = "application/vnd.oasis.opendocument"
_MIME_TYPES = {
    "docx": f"{_MICROSOFT}.wordprocessingml.document",
    "pptx": f"{_MICROSOFT}.presentationml.presentation",
    "xlsx": f"{_MICROSOFT}.spreadsheetml.sheet",
    "odt": f"{_OPEN}.text",
    "odp": f"{_OPEN}.presentation",
    "ods": f"{_OPEN}.spreadsheet",
    "epub": "application/epub+zip",
    "rtf": "application/rtf",
}
_SLIDE = "attachment-slide-"
_SLIDE_MARKER = re.compile(rf"^{_SLIDE}(\d+)$", re.MULTILINE)


def file_to_markdown(path: str, kind: FileKind, content: bytes, ocr: str | None) -> tuple[str, str | None]:
    """Return a file as Markdown without front matter, and a note on what is missing.

    Errors: `AttachmentError`; `LimitExceededError` if another attempt may succeed.
    """
    forbid_network()
    extension = posixpath.splitext(path)[1][1:].lower()
    try:
        text, problem = _converted(extension, kind, content, ocr)
    except (AttachmentError, LimitExceededError, MemoryError):
        raise
    except Exception as error:
        raise AttachmentError(f"is damaged: {type(error).__name__}") from error
    if len(text) > MAX_PAGE_BYTES:
        text, problem = text[: text.rfind("\n", 0, MAX_PAGE_BYTES) + 1 or MAX_PAGE_BYTES], "only the beginning of it is indexed"
    return (f"\n{text}" if text.startswith("---") else text), problem


def _converted(extension: str, kind: FileKind, content: bytes, ocr: str | None) -> tuple[str, str | None]:
    match kind:
        case FileKind.PDF:
            return pdf_to_markdown(content, ocr)
        case FileKind.WORD | FileKind.SLIDES | FileKind.SHEET | FileKind.BOOK:
            return _office_to_markdown(extension, content), None
        case FileKind.HTML:
            return markup.html_to_markdown(markup.decode_text(content)), None
        case FileKind.MAIL:
            return markup.mail_to_markdown(content), None
        case FileKind.NOTEBOOK:
            return markup.notebook_to_markdown(content), None
        case FileKind.IMAGE:
            return image_to_markdown(content, ocr or "eng"), None
        case FileKind.CODE:
            return markup.fenced(markup.decode_text(content), extension), None
    delimiter = _DELIMITERS.get(extension)
    text = markup.decode_text(content)
    return (markup.csv_to_markdown(text, delimiter) if delimiter else text), None


def _office_to_markdown(extension: str, content: bytes) -> str:
    import kreuzberg

    if extension != "rtf":
        _check_archive(content)
    config = kreuzberg.ExtractionConfig(
        use_cache=False,
        output_format="markdown",
        disable_ocr=True,
        max_concurrent_extractions=1,
        pages=kreuzberg.PageConfig(insert_page_markers=True, marker_format=f"\n\n{_SLIDE}{{page_num}}\n\n"),
    )
    try:
        found = kreuzberg.extract_bytes_sync(content, _MIME_TYPES[extension], config)
    except kreuzberg.KreuzbergError as error:
        raise AttachmentError(f"is damaged: {str(error).splitlines()[0]:.200}") from None
    return _SLIDE_MARKER.sub(lambda match: markup.page_marker(int(match[1])), found.content)


def _check_archive(content: bytes) -> None:
    """Refuse a file that is not an archive, is encrypted, or would take too much space when unpacked."""
    try:
        members = zipfile.ZipFile(io.BytesIO(content)).infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise AttachmentError("is damaged, encrypted, or not what its name says") from None
    size = sum(member.file_size for member in members)
    if size > _MAX_UNPACKED_BYTES or len(members) > _MAX_MEMBERS:
        raise AttachmentError(f"unpacks to {size >> 20:,} MB in {len(members):,} parts; allowed are 200 MB in 20,000")
