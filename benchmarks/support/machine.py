"""The machine that is measured on, as far as it decides the figures."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sqlite3
import subprocess
import time
from pathlib import Path

_FLAGS = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_int8")
"""What decides how fast a processor multiplies 8-bit numbers."""
_IDLE = slice(3, 5)
"""Where /proc/stat counts the time in which nothing was to do, and in which all waited for a disk."""
_LOOK_SECONDS = 0.5
_PACKAGES = ("onnxruntime", "chromadb", "tokenizers", "numpy", "otterwiki", "gunicorn")


def processors() -> int:
    """Return the number of processors this process may use."""
    return len(os.sched_getaffinity(0))


def describe() -> dict[str, str]:
    """Return the processor, its cores and flags, the memory, the versions of what is measured, and how busy the machine is."""
    facts = _processor_facts()
    flags = set(facts.get("flags", facts.get("Features", "")).split())
    memory = int(Path("/proc/meminfo").read_text(encoding="ascii").partition("MemTotal:")[2].split()[0])
    return {
        "processor": facts.get("model name", platform.machine()),
        "cores": f"{processors()} of {os.cpu_count()}",
        "flags": " ".join(flag for flag in _FLAGS if flag in flags) or "none that matter",
        "memory": f"{memory / 1024**2:.1f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "git": subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2],
        **{name: importlib.metadata.version(name) for name in _PACKAGES},
        "busy before": f"{busy():.0%} of all cores",
    }


def busy() -> float:
    """Return the share of all processors' time that others took within half a second, while this process waits."""
    before = _processor_ticks()
    time.sleep(_LOOK_SECONDS)
    spent = [now - then for now, then in zip(_processor_ticks(), before, strict=True)]
    return 1 - sum(spent[_IDLE]) / max(sum(spent), 1)


def _processor_ticks() -> list[int]:
    return [int(number) for number in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]


def _processor_facts() -> dict[str, str]:
    first = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
