"""Read PDF files: PDFium finds lines with size and position, from which headings, lists and tables are derived.

Scanned pages are read by OCR.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from otterwiki_semantic.content.attachments.markup import escape, page_marker, table
from otterwiki_semantic.content.attachments.ocr import image_to_markdown
from otterwiki_semantic.core.errors import AttachmentError, LimitExceededError

if TYPE_CHECKING:
    import pypdfium2

MAX_PAGES = 2_000
_LINE = re.compile(r"([^\r\n\x02\ufffe]+)(\x02|\ufffe)?")
"""A line of PDFium's text. U+0002 and U+FFFE represent the hyphen of a divided word."""
_BULLET = re.compile(r"^[•◦‣▪●○–]\s+")
_HEADING_SIZE, _MAX_HEADINGS, _LONGEST_HEADING = 1.12, 4, 200
"""Minimum size of a heading relative to most of the text, the number of heading sizes, and the most characters of a heading."""
_PITCH, _HEADING_PITCH, _COLUMN_GAP = 1.65, 1.3, 0.8
"""In font sizes: the largest line distance in a paragraph and in a heading, and the gap between the cells of a row."""
_SCAN_SECONDS, _SCAN_SCALE, _SCAN_PIXELS = 120, 200 / 72, 3_000
"""Of scanned pages: the time for all of a file, pixels per point (200 dpi), and the longest side in pixels."""


@dataclass(frozen=True, slots=True)
class _PdfLine:
    text: str
    size: float
    bottom: float
    cells: tuple[str, ...]
    """The parts of the line, if wide spaces divide it."""
    is_divided: bool


def pdf_to_markdown(content: bytes, ocr: str | None) -> tuple[str, str | None]:
    """Convert a PDF, with a marker before each page, and a note on what is missing. Errors: `AttachmentError`.

    With `ocr`, Tesseract's languages, pages without text are read as images.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        needs_password = "password" in str(error).lower()
        raise AttachmentError("is protected by a password" if needs_password else "is damaged, or no PDF") from None
    count = len(document)
    pages = [_lines(document, number) for number in range(min(count, MAX_PAGES))]
    levels = _heading_levels([line for page in pages for line in page])
    texts = ["\n\n".join(_blocks(lines, levels)) for lines in pages]
    problem = f"only its first {MAX_PAGES:,} of {count:,} pages are indexed" if count > MAX_PAGES else None
    unread = _read_scans(document, texts, ocr) if ocr else None
    if not any(texts) and not unread:
        hint = "" if ocr else "; if it is scanned, it can be read with SEMANTIC_OCR"
        raise AttachmentError(f"has no text{hint}")
    return "\n\n".join(f"{page_marker(number)}\n\n{text}" for number, text in enumerate(texts, 1)), unread or problem


def _read_scans(document: pypdfium2.PdfDocument, texts: list[str], languages: str) -> str | None:
    """Set the texts of pages without text, and return a note on the first page that cannot be read."""
    problem, end = None, time.monotonic() + _SCAN_SECONDS
    for number in [number for number, text in enumerate(texts) if not text]:
        if time.monotonic() > end:
            return problem or f"its scanned pages from page {number + 1} on take too long to read"
        try:
            texts[number] = image_to_markdown(_image(document, number), languages)
        except (AttachmentError, LimitExceededError, RuntimeError) as error:
            problem = problem or f"its page {number + 1} {error}"
    return problem


def _image(document: pypdfium2.PdfDocument, number: int) -> bytes:
    """Return a page as a grey image in PGM."""
    page = document[number]
    bitmap = page.render(scale=min(_SCAN_SCALE, _SCAN_PIXELS / max(page.get_size())), grayscale=True)
    try:
        pixels, stride, width = memoryview(bitmap.buffer), bitmap.stride, bitmap.width
        rows = (pixels[start : start + width] for start in range(0, stride * bitmap.height, stride))
        return b"P5\n%d %d\n255\n%s" % (width, bitmap.height, b"".join(rows))
    finally:
        bitmap.close()
        page.close()


def _lines(document: pypdfium2.PdfDocument, number: int) -> list[_PdfLine]:
    """Return the lines of a page in PDFium's order, which is the file's; none for a page that PDFium cannot read."""
    from pypdfium2 import PdfiumError, raw

    try:
        page = document[number]
        text_page = page.get_textpage()
    except PdfiumError:
        return []
    try:
        found = []
        for match in _LINE.finditer(text_page.get_text_range()):
            text, start = match[1].strip(), match.start(1)
            if text:
                count = raw.FPDFText_CountRects(text_page, start, len(match[1]))
                boxes = [text_page.get_rect(index) for index in range(count)]
                size = raw.FPDFText_GetFontSize(text_page, start) or 1.0
                cells = _cells(text_page, boxes, size)
                bottom = boxes[0][1] if boxes else 0.0
                found.append(_PdfLine(text, round(size, 1), bottom, cells, match[2] is not None))
        return found
    finally:
        text_page.close()
        page.close()


def _cells(page: pypdfium2.PdfTextPage, boxes: Sequence[tuple[float, float, float, float]], size: float) -> tuple[str, ...]:
    """Return the texts of a line's parts, given as left, bottom, right and top; none if there is only one part."""
    parts: list[list[float]] = []
    for left, bottom, right, top in boxes:
        if parts and left - parts[-1][2] < _COLUMN_GAP * size:
            parts[-1] = [parts[-1][0], min(bottom, parts[-1][1]), right, max(top, parts[-1][3])]
        else:
            parts.append([left, bottom, right, top])
    if len(parts) < 2:
        return ()
    return tuple(" ".join(page.get_text_bounded(*part).split()) for part in parts)


def _heading_levels(lines: Sequence[_PdfLine]) -> dict[float, int]:
    sizes = Counter[float]()
    for line in lines:
        sizes[line.size] += len(line.text)
    body = max(sizes, key=sizes.__getitem__, default=0.0)
    larger = sorted((size for size in sizes if size >= body * _HEADING_SIZE), reverse=True)
    return {size: min(level, _MAX_HEADINGS) for level, size in enumerate(larger, 1)}


def _blocks(lines: Sequence[_PdfLine], levels: Mapping[float, int]) -> Iterator[str]:
    """Yield paragraphs, headings, list items and tables."""
    for columns, group in groupby(lines, lambda line: 0 if _BULLET.match(line.text) else len(line.cells)):
        rows = list(group)
        if columns and len(rows) > 1:
            yield table([row.cells for row in rows])
            continue
        for paragraph in _paragraphs(rows, levels):
            first = paragraph[0]
            text = "".join(line.text if line.is_divided else f"{line.text} " for line in paragraph).strip()
            level = levels.get(first.size, 0) if len(text) <= _LONGEST_HEADING else 0
            bullet = _BULLET.match(text)
            if bullet:
                yield f"- {escape(text[bullet.end() :])}"
            else:
                yield f"{'#' * level} {escape(text)}".strip()


def _paragraphs(lines: Sequence[_PdfLine], levels: Mapping[float, int]) -> Iterator[list[_PdfLine]]:
    """Yield groups of lines: of one size, close below each other, and with a bullet only on the first."""
    paragraph: list[_PdfLine] = []
    for line in lines:
        if paragraph:
            before = paragraph[-1]
            pitch = _HEADING_PITCH if line.size in levels else _PITCH
            is_close = 0 < before.bottom - line.bottom <= pitch * line.size or before.is_divided
            if line.size != before.size or not is_close or _BULLET.match(line.text):
                yield paragraph
                paragraph = []
        paragraph.append(line)
    if paragraph:
        yield paragraph
