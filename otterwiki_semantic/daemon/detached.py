"""Starts the owner of an index as nobody's child: ``python -m otterwiki_semantic.daemon.detached SETTINGS``.

A server's master process may wait for all its children before it ends (uWSGI does), and the owner waits for the server. So this
process, a fresh interpreter with one thread, forks at once and ends; its child is the owner.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    if sys.stderr is None:  # the starter's was closed; its number must not become another file's
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if os.fork():
        os._exit(0)
    from otterwiki_semantic.daemon.process import main

    sys.exit(main(sys.argv[1]))
