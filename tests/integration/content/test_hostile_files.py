"""Files that are made to do harm are refused or read in the reading process, which stays within its limits."""

from __future__ import annotations

import io
import json
import random
import struct
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.content.attachments import file_kind, file_to_markdown
from otterwiki_semantic.core.errors import AttachmentError, LimitExceededError
from otterwiki_semantic.core.records import Filters, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.worker_process import WorkerProcess
from tests.support.attachments import pdf, word
from tests.support.engines import opened
from tests.support.live_wiki import commit, eventually, is_settled, make_repository

pytestmark = pytest.mark.real_parts

_SECONDS = 0.5
_EACH = 4
"""Of the files, each fourth is also indexed while searches are asked."""
_CONNECT = """
import socket, otterwiki_semantic.core.worker_process as worker_process
worker_process.forbid_network()
socket.create_connection(("127.0.0.1", 9))
"""
_PDF = pdf(["# Title", "A sentence that ends. " * 20], ["Second page."])
_WORD = word("# Title", "A sentence that ends.")
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_BOMB = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9)
)
_ODT = "application/vnd.oasis.opendocument.text"


def archive(members: Mapping[str, bytes | str], *, stored: bool = False) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED, compresslevel=1) as target:
        for name, content in members.items():
            target.writestr(name, content)
    return file.getvalue()


def changed_word(name: str, content: bytes | str) -> bytes:
    """Return a Word document of which one part is replaced or added."""
    with zipfile.ZipFile(io.BytesIO(_WORD)) as source:
        return archive({each: source.read(each) for each in source.namelist()} | {name: content})


def with_entities(name: str, root: str = "a") -> bytes:
    return changed_word(name, f"{_BOMB}]><{root} {_W}>&j;</{root}>")


def lying_size(content: bytes) -> bytes:
    """Return an archive whose directory says that every member is one byte long."""
    data, at = bytearray(content), 0
    while (at := data.find(b"PK\x01\x02", at)) >= 0:
        data[at + 24 : at + 28] = struct.pack("<I", 1)
        at += 4
    return bytes(data)


def raw_pdf(*objects: str) -> bytes:
    body = "%PDF-1.7\n" + "".join(f"{n} 0 obj {each} endobj\n" for n, each in enumerate(objects, 1))
    return f"{body}trailer <</Root 1 0 R /Size {len(objects) + 1}>>\n%%EOF".encode("latin-1")


def word_with(text: str, before: str = "") -> bytes:
    """Return a Word document of one paragraph, after something before its root."""
    body = f"<w:document {_W}><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>"
    return changed_word("word/document.xml", before + body)


def stream(content: bytes, extra: str = "") -> str:
    return f"<</Length {len(content)} {extra}>> stream\n{content.decode('latin-1')}\nendstream"


def pages_pdf(content: str, resources: str = "", *more: str) -> bytes:
    return raw_pdf(
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<<{resources}>>>>",
        content,
        *more,
    )


def many_pages(count: int) -> bytes:
    kids = " ".join(["3 0 R"] * count)
    return raw_pdf(
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {count}>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
    )


def nested_zip(depth: int) -> bytes:
    content = b"x" * 10_000
    for level in range(depth):
        content = archive({f"{level}.zip": content})
    return content


def noise(seed: int, size: int = 5_000) -> bytes:
    return random.Random(seed).randbytes(size)


def flipped(content: bytes, seed: int) -> bytes:
    """Return a file of which every hundredth byte or so is another one."""
    chance, data = random.Random(seed), bytearray(content)
    for _ in range(len(data) // 100 + 1):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


def _cut(content: bytes, share: float) -> bytes:
    return content[: int(len(content) * share)]


def _huge_stream() -> bytes:
    return zlib.compress(b"BT (a) Tj ET " * 4_000_000, 1)


_FAR_CELL = '<worksheet><sheetData><row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData></worksheet>'
_LYING_FONT = "/Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 5 0 R>>>>"
_SHOW = stream(b"BT /F 12 Tf (hello) Tj ET")
FILES: dict[str, Callable[[], bytes]] = {
    "empty.pdf": bytes,
    "empty.docx": bytes,
    "empty.html": bytes,
    "empty.eml": bytes,
    "empty.ipynb": bytes,
    "header only.pdf": lambda: b"%PDF-1.7\n",
    "cut in half.pdf": lambda: _cut(_PDF, 0.5),
    "cut at the end.pdf": lambda: _cut(_PDF, 0.95),
    "cut in half.docx": lambda: _cut(_WORD, 0.5),
    "cut at the end.docx": lambda: _cut(_WORD, 0.95),
    "noise.pdf": lambda: b"%PDF-1.7\n" + noise(1),
    "noise.docx": lambda: b"PK\x03\x04" + noise(2),
    "noise.xlsx": lambda: noise(3),
    "noise.pptx": lambda: noise(4),
    "noise.odt": lambda: noise(5),
    "noise.epub": lambda: noise(6),
    "noise.rtf": lambda: b"{\\rtf1 " + noise(7),
    "noise.eml": lambda: noise(8),
    "noise.html": lambda: noise(9),
    "noise.txt": lambda: noise(10),
    "noise.ipynb": lambda: noise(11),
    "noise.csv": lambda: noise(12),
    **{f"flipped {seed}.pdf": partial(flipped, _PDF, seed) for seed in range(3)},
    **{f"flipped {seed}.docx": partial(flipped, _WORD, seed) for seed in range(3)},
    "a program.pdf": lambda: b"MZ" + noise(13),
    "a picture.docx": lambda: b"\x89PNG\r\n\x1a\n" + noise(14),
    "10,000 pages.pdf": lambda: many_pages(10_000),
    "its own page tree.pdf": lambda: raw_pdf("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[2 0 R 2 0 R]/Count 999999>>"),
    "a count that lies.pdf": lambda: raw_pdf("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[]/Count 2000000000>>"),
    "a stream of 50 MB.pdf": lambda: pages_pdf(stream(_huge_stream(), "/Filter/FlateDecode")),
    "a length that lies.pdf": lambda: pages_pdf("<</Length 99999999>> stream\nBT ET\nendstream"),
    "a font that lies.pdf": lambda: pages_pdf(_SHOW, _LYING_FONT, stream(b"begincmap 99 beginbfrange <00><ffffffff><0041>")),
    "a font without end.pdf": lambda: pages_pdf(
        _SHOW, "/Font<</F 5 0 R>>", "<</Type/Font/Subtype/Type0/DescendantFonts[5 0 R]>>"
    ),
    "a form within itself.pdf": lambda: pages_pdf(
        stream(b"/X Do"),
        "/XObject<</X 5 0 R>>",
        stream(b"/X Do", "/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 5 0 R>>>>"),
    ),
    "scripts.pdf": lambda: raw_pdf(
        "<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(while(1);)>>>>", "<</Type/Pages/Kids[]/Count 0>>"
    ),
    "launches.pdf": lambda: raw_pdf(
        "<</Type/Catalog/Pages 2 0 R/OpenAction<</S/Launch/F(/bin/sh)>>>>", "<</Type/Pages/Kids[]/Count 0>>"
    ),
    "fetches.pdf": lambda: raw_pdf(
        "<</Type/Catalog/Pages 2 0 R/OpenAction<</S/URI/URI(http://127.0.0.1:9/)>>>>", "<</Type/Pages/Kids[]/Count 0>>"
    ),
    "arrays in arrays.pdf": lambda: raw_pdf("[" * 100_000),
    "encrypted.pdf": lambda: _PDF.replace(b"trailer\n<<", b"trailer\n<< /Encrypt <</Filter/Standard/V 2/R 3/O(x)/U(x)/P -4>>"),
    "unpacks to 201 MB.docx": lambda: changed_word("word/document.xml", b" " * (201 << 20)),
    "sizes that lie.docx": lambda: lying_size(changed_word("word/document.xml", b"<a>" + b" " * (201 << 20))),
    "21,000 members.docx": lambda: archive({f"{number}": "" for number in range(21_000)}),
    "archives in archives.docx": lambda: nested_zip(50),
    "members outside.docx": lambda: changed_word("../../../../tmp/outside", "x"),
    "entities.docx": lambda: with_entities("word/document.xml", "w:document"),
    "entities in styles.docx": lambda: with_entities("word/styles.xml", "w:styles"),
    "entities.odt": lambda: archive({"mimetype": _ODT, "content.xml": f"{_BOMB}]><a>&j;</a>"}),
    "entities.xlsx": lambda: archive({"xl/workbook.xml": f"{_BOMB}]><a>&j;</a>", "[Content_Types].xml": "<a/>"}),
    "entities.epub": lambda: archive({"META-INF/container.xml": f"{_BOMB}]><a>&j;</a>"}),
    "reads a file.docx": lambda: word_with("&x;", '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
    "reads a file.odt": lambda: archive(
        {"mimetype": _ODT, "content.xml": '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'}
    ),
    "fetches.docx": lambda: changed_word("word/document.xml", '<!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd"><a/>'),
    "macros.docx": lambda: changed_word("word/vbaProject.bin", noise(15)),
    "deep.docx": lambda: changed_word("word/document.xml", f"<w:document {_W}>" + "<w:p>" * 100_000),
    "a cell far away.xlsx": lambda: archive({"xl/worksheets/sheet1.xml": _FAR_CELL}),
    "braces.rtf": lambda: b"{\\rtf1 " + b"{" * 200_000,
    "deep.html": lambda: b"<div>" * 200_000,
    "rows in rows.html": lambda: b"<table><tr><td>" * 50_000,
    "open comments.html": lambda: b"<!--" * 100_000,
    "open tags.html": lambda: b"<a " * 200_000,
    "entities.html": lambda: b"&amp;" * 50_000 + b"&#x110000;" * 1_000,
    "parts in parts.eml": lambda: b"".join(
        b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (n, n) for n in range(3_000)
    ),
    "endless header.eml": lambda: b"Subject: " + b"=?utf-8?q?a?= " * 50_000,
    "unknown charset.eml": lambda: b"Content-Type: text/plain; charset=no-such\n\nbody\n",
    "deep.ipynb": lambda: b"[" * 100_000,
    "numbers.ipynb": lambda: json.dumps({"cells": [{"cell_type": "code", "source": 5}]}).encode(),
    "digits.ipynb": lambda: b'{"cells": ' + b"1" * 100_000 + b"}",
    "one cell.csv": lambda: b'"' + b"a" * 300_000,
    "wide.csv": lambda: b"," * 50_000,
    "one line.txt": lambda: b"[" * 300_000,
    "headings.txt": lambda: b"# a\n" * 100_000,
    "fences.py": lambda: b"```" * 200_000,
    "a null.py": lambda: b"x = 1\0",
    "half a character.txt": lambda: b"\xff\xfe\x00",
}


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    worker = WorkerProcess()
    yield worker
    worker.close()


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_read_or_refused_within_the_limits(worker: WorkerProcess, name: str) -> None:
    content = FILES[name]()
    kind = file_kind(f"page/{name}")
    assert kind is not None
    try:
        text, _ = worker.call(_SECONDS, file_to_markdown, name, kind, content, None)
    except (AttachmentError, LimitExceededError) as error:
        text = str(error)
    assert "root:" not in text
    assert len(text) <= 2_000_001


def test_the_process_reads_on_after_all_of_them(worker: WorkerProcess) -> None:
    text, problem = worker.call(10, file_to_markdown, "good.pdf", file_kind("page/good.pdf"), _PDF, None)  # type: ignore[arg-type]
    assert ("# Title" in text, problem) == (True, None)


def test_searches_are_answered_while_hostile_files_are_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    answered_in_time: list[bool] = []
    call = WorkerProcess.call

    def call_until_a_search_is_answered(self: WorkerProcess, seconds: float, function: Any, *args: Any, **named: Any) -> Any:
        if function is not file_to_markdown:
            return call(self, seconds, function, *args, **named)
        answered.clear()
        try:
            return call(self, seconds, function, *args, **named)
        finally:
            answered_in_time.append(answered.wait(60))

    monkeypatch.setattr("otterwiki_semantic.indexing.page_loader._FILE_SECONDS", _SECONDS)
    repository = make_repository(tmp_path / "repository", {"page.md": "# Page\n\nThe otter sleeps in a hollow willow.\n"})
    index = opened(Settings(repository, tmp_path / "index", sync_interval=3600, pages=()))
    monkeypatch.setattr(WorkerProcess, "call", call_until_a_search_is_answered)
    files = {name: FILES[name]() for name in list(FILES)[::_EACH]}
    commit(repository, {f"page/{name}": content for name, content in files.items()} | {"page/good.pdf": _PDF})
    index.notify()

    def is_equal_while_searching() -> bool:
        (hit,) = index.search(["where does the otter sleep"], SearchOptions(n=1))[0].results
        assert hit.path == "page"
        answered.set()
        status = index.status()
        return is_settled(status) and status.index.commit == status.index.head

    try:
        eventually(is_equal_while_searching)
        assert index.status().attachments == len(files) + 1
        assert len(answered_in_time) > len(files)
        assert all(answered_in_time)
        (hit,) = index.search(["sentence that ends"], SearchOptions(n=1, filters=Filters(path="page/good.pdf")))[0].results
        assert hit.page_number == 1
        (problem,) = index.status().problems
        assert "attached files are not indexed as they should be" in problem.message
    finally:
        index.close()


def test_the_reading_process_reaches_no_network(worker: WorkerProcess) -> None:
    with pytest.raises(PermissionError):
        worker.call(10, exec, _CONNECT)
