"""What stands in for the interpreter: see `tests.support.fork_server`. It imports as little as it can."""

import array
import marshal
import os
import signal
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOL_SOCKET, socket

_MOST_FILES = 64


def is_inherited(file: int) -> bool:
    """Whether a file was open when this process began."""
    try:
        return os.get_inheritable(file)
    except OSError:
        return False


files = [file for file in range(_MOST_FILES) if is_inherited(file)]
umask = os.umask(0)
request = marshal.dumps((sys.argv[1:], dict(os.environ), os.getcwd(), umask, files))  # noqa: PTH109
connection = socket(AF_UNIX)
connection.connect(sys.argv[0].removesuffix("python") + "socket")
connection.sendmsg([len(request).to_bytes(8, "big")], [(SOL_SOCKET, SCM_RIGHTS, array.array("i", files))])
connection.sendall(request)
for file in files:
    os.close(file)
pid = int.from_bytes(connection.recv(4), sys.byteorder)
for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(name, lambda number, _: os.kill(pid, number))
status = int.from_bytes(connection.recv(4), sys.byteorder, signed=True)
if status < 0:
    if -status != signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
