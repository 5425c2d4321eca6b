"""Records used for the first time by several threads at once, as by a worker's first requests: msgspec alone crashes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.real_processes

_FIRST_USES = """
import sys
from threading import Barrier, Thread
from msgspec import defstruct
from otterwiki_semantic.core.serialization import convert, decode

def use(record, barrier):
    barrier.wait()
    assert decode(b'{"inner": [{"field0": 1}]}', record).inner[0].field0 == 1
    assert convert({"inner": [{"field0": 1}]}, record).inner[0].field0 == 1

sys.setswitchinterval(1e-6)
for _ in range(100):
    inner = defstruct("Inner", [(f"field{number}", int, 0) for number in range(50)])
    outer = defstruct("Outer", [("inner", list[inner]), *((f"field{number}", inner | None, None) for number in range(50))])
    barrier = Barrier(4)
    threads = [Thread(target=use, args=(outer, barrier)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_may_use_a_record_for_the_first_time_at_once() -> None:
    ended = subprocess.run([sys.executable, "-c", _FIRST_USES], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
