"""The index daemon and how other processes reach it. Only the light half is exported: what a wiki worker may import.

`engine`, the heavy half, is for the daemon itself; `page_reader` needs the markdown parser.
"""

from otterwiki_semantic.daemon.client import IndexClient
from otterwiki_semantic.daemon.interface import IndexService
from otterwiki_semantic.daemon.probe import DaemonInfo, DaemonProbe
from otterwiki_semantic.daemon.protocol import settings_fingerprint, socket_location

__all__ = [
    "DaemonInfo",
    "DaemonProbe",
    "IndexClient",
    "IndexService",
    "settings_fingerprint",
    "socket_location",
]
