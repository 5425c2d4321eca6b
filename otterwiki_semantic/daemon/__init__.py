"""The index daemon, and its clients. Exports only the light half, which a wiki worker may import.

`engine`, the heavy half, is for the daemon itself; `page_reader` needs the Markdown parser.
"""

from otterwiki_semantic.daemon.client import DisabledIndex, IndexClient, Unchanged, conditional
from otterwiki_semantic.daemon.interface import IndexService, progress_of, whole_answer
from otterwiki_semantic.daemon.protocol import DaemonInfo, DaemonProbe, code_version, settings_fingerprint, socket_location
