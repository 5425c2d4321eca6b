"""Kill the index, feed it absurd texts, soak it: python -m tests.chaos --parts kills fuzz soak --minutes 20."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos import chunk_fuzz, grammar_fuzz, pump_fuzz, query_fuzz
from tests.chaos.crashes import prove_crash_safety
from tests.chaos.fuzzing import fuzz
from tests.chaos.soak import prove_endurance
from tests.support.fork_server import begin_session, end_session
from tests.support.light_parts import SESSION

_PARTS = ("kills", "fuzz", "soak")


def main() -> int:
    """Prove it; gives 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS[:2], help="what to do (default: kills fuzz)")
    parser.add_argument("--minutes", type=float, default=20, help="how long the soak takes, at least (default: 20)")
    parser.add_argument("--kills", type=int, default=200, help="how often an index is killed (default: 200)")
    parser.add_argument("--fuzz-chunks", type=int, default=100_000, help="pages for the chunker (default: 100000)")
    parser.add_argument("--fuzz-queries", type=int, default=10_000, help="queries (default: 10000)")
    parser.add_argument("--fuzz-pumps", type=int, default=500, help="texts of 100 KB that repeat a piece (default: 500)")
    parser.add_argument("--fuzz-grammar", type=int, default=100_000, help="texts to parse, by the clock (default: 100000)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="runs with the same seed do the same")
    parser.add_argument("--round", type=int, default=None, help="only this round of kills")
    parser.add_argument("--at", default="", help="kill from inside only at locations with this in their name, such as serve")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    place = Path(tempfile.mkdtemp(prefix="chaos-"))
    begin_session()
    is_right = True
    if "kills" in arguments.parts and arguments.kills:
        is_right &= prove_crash_safety(place, arguments.seed, arguments.kills, arguments.round, arguments.at)
    if "fuzz" in arguments.parts and arguments.round is None:
        pages, queries = arguments.fuzz_chunks, arguments.fuzz_queries
        is_right &= fuzz("chunks", chunk_fuzz.try_pages, pages, arguments.seed, place)
        is_right &= fuzz("grammar", grammar_fuzz.try_texts, arguments.fuzz_grammar, arguments.seed, place)
        is_right &= fuzz("pumps", pump_fuzz.try_texts, arguments.fuzz_pumps, arguments.seed, place)
        is_right &= fuzz("queries", query_fuzz.try_queries, queries, arguments.seed, place)
    if "soak" in arguments.parts:
        is_right &= prove_endurance(place, arguments.seed, arguments.minutes)
    end_session()
    shutil.rmtree(os.environ[SESSION])
    if is_right:
        shutil.rmtree(place)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
