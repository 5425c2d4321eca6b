"""Attached files: which files are indexed, and their conversion to Markdown."""

from otterwiki_semantic.content.attachments.convert import MAX_FILE_BYTES as MAX_FILE_BYTES
from otterwiki_semantic.content.attachments.convert import file_to_markdown as file_to_markdown
from otterwiki_semantic.content.attachments.kinds import attachment_rule as attachment_rule
from otterwiki_semantic.content.attachments.kinds import file_kind as file_kind
from otterwiki_semantic.content.attachments.kinds import missing_kinds as missing_kinds
from otterwiki_semantic.content.attachments.kinds import tesseract_languages as tesseract_languages
from otterwiki_semantic.content.attachments.texts import DIRECTORY as DIRECTORY
from otterwiki_semantic.content.attachments.texts import AttachmentText as AttachmentText
from otterwiki_semantic.content.attachments.texts import AttachmentTexts as AttachmentTexts
