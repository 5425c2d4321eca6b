"""Files to attach, made by the libraries that write them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from shutil import which

import docx
import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Table

STYLES = getSampleStyleSheet()
needs_tesseract = pytest.mark.skipif(which("tesseract") is None, reason="needs Tesseract: apt-get install tesseract-ocr")


def pdf(*pages: Sequence[object]) -> bytes:
    """Return a PDF. A page has headings, given as ``# text`` or ``## text``, paragraphs, and tables, given as rows."""
    file, story = io.BytesIO(), []
    for page in pages:
        for part in page:
            if isinstance(part, str):
                marks, _, text = part.rpartition("# ")
                story.append(Paragraph(text, STYLES[f"Heading{len(marks) + 1}" if "# " in part else "BodyText"]))
            else:
                story.append(Table(part))
        story.append(PageBreak())
    SimpleDocTemplate(file, invariant=1).build(story)
    return file.getvalue()


def word(*parts: str) -> bytes:
    """Return a Word document of headings, given as ``# text`` or ``## text``, and paragraphs."""
    file, document = io.BytesIO(), docx.Document()
    for part in parts:
        marks, _, text = part.rpartition("# ")
        if "# " in part:
            document.add_heading(text, len(marks) + 1)
        else:
            document.add_paragraph(part)
    document.save(file)
    return file.getvalue()


def image(*lines: str, file_format: str = "PNG") -> bytes:
    """Return an image of lines of text, as from a scanner at 150 dpi."""
    file, page = io.BytesIO(), Image.new("L", (1240, 80 * len(lines) + 80), "white")
    ImageDraw.Draw(page).text((60, 40), "\n".join(lines), fill="black", font=ImageFont.load_default(40))
    page.save(file, file_format, resolution=150)
    return file.getvalue()
