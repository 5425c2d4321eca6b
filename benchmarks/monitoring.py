"""What figures for Prometheus cost: noting a search, a search with and without them in turns, and giving them all."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from statistics import median

from benchmarks.corpus import questions
from benchmarks.local import opened
from benchmarks.options import Options
from benchmarks.percentiles import p95
from benchmarks.report import Figure, at_most, say
from benchmarks.wikis import wiki
from otterwiki_semantic.local_index import LocalIndex
from otterwiki_semantic.monitoring import Monitoring
from otterwiki_semantic.records import SearchOptions
from otterwiki_semantic.watching import UNWATCHED
