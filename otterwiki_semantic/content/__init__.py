"""The content of the wiki: from git objects to pages, chunks and words.

`git` reads the pages' files and their history, `folder` commits the changes in a folder without git, `markdown` parses files
into sections, `pages` handles titles, outlines and links, `chunking` divides a page into the chunks that are embedded and
shown, `analysis` extracts the words for the keyword index, and `excerpts` selects the part of a chunk to show.
"""

from otterwiki_semantic.content.excerpts import excerpt_window, row_parts
from otterwiki_semantic.content.folder import Folder
from otterwiki_semantic.content.git import PageFile, Repository, write_notation
