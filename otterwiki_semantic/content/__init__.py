"""What the wiki says, read from git.

`Repository` gives the pages' files and their history. The rest is in rooms of its own: `pages` (titles, outlines, links),
`markdown`, `chunking` and `analysis`.
"""

from otterwiki_semantic.content.git import PageFile, Repository

__all__ = ["PageFile", "Repository"]
