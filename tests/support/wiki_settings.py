"""Settings of the served wikis, in the wiki's own way: browsers ask for its scripts and styles once, not with each page."""

SEND_FILE_MAX_AGE_DEFAULT = 3600
