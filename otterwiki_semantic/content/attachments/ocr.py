"""Read the text of images with Tesseract."""

from __future__ import annotations

import os
import re
import subprocess

from otterwiki_semantic.content.attachments.markup import escape
from otterwiki_semantic.core.errors import AttachmentError, LimitExceededError

_SECONDS = 60
_IMAGE = re.compile(rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|II\*\0|MM\0\*|RIFF.{4}WEBP|P5\n", re.DOTALL)
"""The first bytes of PNG, JPEG, TIFF, WebP and PGM. Tesseract reads anything else as a list of files to open."""


def image_to_markdown(content: bytes, languages: str) -> str:
    """Return the text of an image; `languages` are Tesseract's. Errors: `AttachmentError`, `LimitExceededError`."""
    if not _IMAGE.match(content):
        raise AttachmentError("is damaged, or no image")
    command = ("tesseract", "stdin", "stdout", "-l", languages)
    environment = os.environ | {"OMP_THREAD_LIMIT": "1"}  # its other threads wait in a loop
    try:
        done = subprocess.run(command, input=content, capture_output=True, timeout=_SECONDS, env=environment, check=False)
    except subprocess.TimeoutExpired:
        raise LimitExceededError(f"took Tesseract longer than {_SECONDS} s") from None
    except OSError as error:
        raise AttachmentError(f"cannot be read by Tesseract: {error}") from None
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
        raise AttachmentError(f"cannot be read by Tesseract: {reason[0]:.200}")
    return escape(done.stdout.decode("utf-8", errors="replace").replace("\f", "\n").strip())
