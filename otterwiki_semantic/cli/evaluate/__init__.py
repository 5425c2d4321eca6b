"""`otterwiki-semantic eval`: measure the ranking with judged queries."""
