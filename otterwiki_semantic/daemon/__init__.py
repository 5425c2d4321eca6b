"""The index daemon, and its clients. Exports only the light half, which a wiki worker may import.

`engine`, the heavy half, is for the daemon itself; `page_reader` needs the Markdown parser.
"""

from otterwiki_semantic.daemon.client import DisabledIndex as DisabledIndex
from otterwiki_semantic.daemon.client import IndexClient as IndexClient
from otterwiki_semantic.daemon.client import Unchanged as Unchanged
from otterwiki_semantic.daemon.client import conditional as conditional
from otterwiki_semantic.daemon.interface import IndexService as IndexService
from otterwiki_semantic.daemon.interface import progress_of as progress_of
from otterwiki_semantic.daemon.interface import whole_answer as whole_answer
from otterwiki_semantic.daemon.protocol import DaemonInfo as DaemonInfo
from otterwiki_semantic.daemon.protocol import DaemonProbe as DaemonProbe
from otterwiki_semantic.daemon.protocol import code_version as code_version
from otterwiki_semantic.daemon.protocol import settings_fingerprint as settings_fingerprint
from otterwiki_semantic.daemon.protocol import socket_location as socket_location
