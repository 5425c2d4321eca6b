"""Proof of crash safety: `python -m tests.chaos` kills the index's process over and over, and feeds it absurd texts.

`wikis` makes a small wiki and its changes, `scenarios` says what the index is doing when it is killed. `victim` is a process
that kills itself at a point that `points` counts; `outside` kills the real owner at a random time. `laboratory` has what all
rounds share, `rounds` kills and restarts, and `contents` compares what became of an index with one built afresh; `leftovers`
reads what was killed. `crashes` runs many rounds. `fuzzing` runs `chunk_fuzz` and `query_fuzz`, which do without kills.
"""
