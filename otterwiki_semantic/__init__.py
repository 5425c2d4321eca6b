"""Search by meaning for An Otter Wiki: an index of every section, always equal to the wiki's git HEAD."""

__version__ = "1.0.0"
