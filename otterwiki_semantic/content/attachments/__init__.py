"""Attached files: which files are indexed, and their conversion to Markdown."""

from otterwiki_semantic.content.attachments.convert import MAX_FILE_BYTES, file_to_markdown
from otterwiki_semantic.content.attachments.kinds import attachment_rule, file_kind, tesseract_languages
from otterwiki_semantic.content.attachments.texts import DIRECTORY, AttachmentText
