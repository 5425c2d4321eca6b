"""Files become Markdown with their headings, lists, tables and pages."""

from __future__ import annotations

import json
from pathlib import Path

import pypdfium2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otterwiki_semantic.content.attachments import attachment_rule, file_kind, file_to_markdown, tesseract_languages
from otterwiki_semantic.content.attachments.markup import decode_text, escape, html_to_markdown
from otterwiki_semantic.content.attachments.paging import parse_attachment
from otterwiki_semantic.content.attachments.texts import AttachmentText, AttachmentTexts
from otterwiki_semantic.content.markdown import parse_markdown
from otterwiki_semantic.core.errors import AttachmentError, LimitExceededError
from otterwiki_semantic.core.records import FileKind
from otterwiki_semantic.core.settings import Settings
from tests.support.attachments import image, needs_tesseract, pdf, word

LONG = "The tenant pays the rent until the third working day of each month, to the account that the landlord names. " * 4
PRICES = [["Article", "Price", "Due"], ["Gas boiler", "900 EUR", "May"], ["Heat pump", "1,900 EUR", "June"]]


def markdown(name: str, content: bytes, ocr: str | None = None) -> str:
    kind = file_kind(f"page/{name}")
    assert kind is not None
    return file_to_markdown(name, kind, content, ocr)[0]


def test_a_pdf_has_headings_paragraphs_tables_and_pages() -> None:
    text = markdown("a.pdf", pdf(["# Lease", LONG, "## Prices", PRICES, LONG], ["Goes on."]))
    assert text.split("\n\n") == [
        *("<!-- page 1 -->", "# Lease", LONG.strip(), "## Prices"),
        "| Article | Price | Due |\n| --- | --- | --- |\n| Gas boiler | 900 EUR | May |\n| Heat pump | 1,900 EUR | June |",
        *(LONG.strip(), "<!-- page 2 -->", "Goes on."),
    ]


def test_a_section_is_divided_where_a_page_begins() -> None:
    document = parse_attachment(markdown("a.pdf", pdf(["# Lease", LONG], ["Goes on."], ["# End", LONG])))
    parts = [(section.heading, section.path, section.anchor) for section in document.sections]
    assert parts == [("Lease", ("Lease",), "page=1"), ("", ("Lease",), "page=2"), ("End", ("End",), "page=3")]


def test_a_scan_is_refused_without_ocr() -> None:
    with pytest.raises(AttachmentError, match="has no text; if it is scanned"):
        markdown("a.pdf", image("Scanned.", file_format="PDF"))


@needs_tesseract
@pytest.mark.parametrize(("name", "file_format"), [("a.png", "PNG"), ("a.JPG", "JPEG"), ("a.tif", "TIFF"), ("a.webp", "WEBP")])
def test_images_are_read_by_ocr(name: str, file_format: str) -> None:
    text = markdown(name, image("# Invoice 27", "Payable in June.", file_format=file_format), "eng")
    assert text == "\\# Invoice 27\nPayable in June."


@needs_tesseract
def test_scanned_pages_of_a_pdf_are_read_by_ocr(tmp_path: Path) -> None:
    with (
        pypdfium2.PdfDocument(pdf(["Printed."])) as document,
        pypdfium2.PdfDocument(image("Scanned.", file_format="PDF")) as scan,
    ):
        document.import_pages(scan)
        document.save(tmp_path / "a.pdf")
    assert markdown("a.pdf", (tmp_path / "a.pdf").read_bytes(), "eng") == (
        "<!-- page 1 -->\n\nPrinted.\n\n<!-- page 2 -->\n\nScanned."
    )


@needs_tesseract
def test_files_are_read_again_once_a_language_of_ocr_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSDATA_PREFIX", str(tmp_path))
    rules = []
    for language in ("osd", "eng", "deu"):
        (tmp_path / f"{language}.traineddata").touch()
        tesseract_languages.cache_clear()
        rules.append(attachment_rule(Settings(tmp_path, tmp_path, ocr="eng+deu")))
    tesseract_languages.cache_clear()
    assert [rule.ocr for rule in rules] == [None, "eng", "eng+deu"]
    assert len({rule.key for rule in rules}) == 3


@needs_tesseract
def test_a_scan_that_takes_too_long_is_no_file_without_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.content.attachments.ocr._SECONDS", 0)
    with pytest.raises(LimitExceededError, match="longer than 0 s"):
        markdown("a.png", image("Scanned."), "eng")
    problem = file_to_markdown("a.pdf", FileKind.PDF, image("Scanned.", file_format="PDF"), "eng")[1]
    assert problem == "its page 1 took Tesseract longer than 0 s"


def test_ocr_opens_no_file_that_an_image_names(tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(image("Secret"))
    for content in (f"{secret}\n", f"RIFF\n{secret}\n"):
        with pytest.raises(AttachmentError, match="no image"):
            markdown("a.png", content.encode(), "eng")


def test_a_word_document_has_its_headings() -> None:
    assert markdown("a.docx", word("# Leave", "Thirty days.", "## More")).split("\n\n")[:3] == [
        "# Leave",
        "Thirty days.",
        "## More\n",
    ]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", b"Name,Role\nAnn | Lee,Cook\n", "| Name | Role |\n| --- | --- |\n| Ann \\| Lee | Cook |"),
        ("a.py", b"def f():\n    return 1\n", "```py\ndef f():\n    return 1\n```"),
        ("a.txt", b"---\nsearch: false\n---\n", "\n---\nsearch: false\n---\n"),
        ("a.eml", b"Subject: Offer\nFrom: a@b.c\n\n900 euros\n> asked\n", "# Offer\n\nFrom: a@b.c\n\n900 euros"),
        (
            "a.ipynb",
            json.dumps(
                {"cells": [{"cell_type": "code", "source": ["1"], "outputs": [{"output_type": "stream", "text": "2"}]}]}
            ).encode(),
            "```\n1\n```\n\n```\n2\n```",
        ),
    ],
)
def test_other_files_need_no_library(name: str, content: bytes, expected: str) -> None:
    assert markdown(name, content) == expected


def test_html_has_no_scripts_and_menus() -> None:
    page = """<head><title>x</title></head><nav>menu</nav>
    <h2>Pump <b>A</b></h2><p>Runs&nbsp;well<br>always</p><script>x()</script>
    <ul><li>one<li>two</ul><pre>a\n  b</pre><table><tr><th>A<th>B</tr><tr><td>1</td><td>2</td></tr></table><img alt="Plan">"""
    assert html_to_markdown(page).startswith("## Pump A\n\nRuns well\n\nalways\n\n- one\n\n- two\n\n```\na\n  b\n```\n\n")
    assert html_to_markdown(page).endswith("Plan")


@example(["1==1 1==1"])
@given(st.lists(st.text("ab #*_[]<>|`~\\-+=.1)&$;:^!l", min_size=1, max_size=12).filter(str.strip), min_size=1, max_size=4))
def test_escaped_text_is_shown_as_it_is(words: list[str]) -> None:
    text = " ".join(" ".join(words).split())
    sections = parse_markdown(f"x {escape(text)}").sections
    assert " ".join(line.text for section in sections for block in section.blocks for line in block.lines) == f"x {text}"


@pytest.mark.parametrize(("content", "text"), [("é".encode(), "é"), ("é".encode("cp1252"), "é"), ("é".encode("utf-16"), "é")])
def test_text_is_read_in_its_encoding(content: bytes, text: str) -> None:
    assert decode_text(content) == text


def test_texts_are_kept_until_their_files_are_gone(tmp_path: Path) -> None:
    texts = AttachmentTexts(tmp_path)
    texts.put("a" * 40, FileKind.PDF, AttachmentText("one", None))
    texts.put("b" * 40, FileKind.PDF, AttachmentText("", "it is damaged"))
    texts.prune({"b" * 40})
    assert texts.get("a" * 40, FileKind.PDF) is None
    assert texts.get("b" * 40, FileKind.PDF) == ("", "it is damaged")
