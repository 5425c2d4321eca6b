"""The index daemon and how other processes reach it. Only the light half is exported: what a wiki worker may import."""

from otterwiki_semantic.daemon.client import IndexClient
from otterwiki_semantic.daemon.interface import IndexService
from otterwiki_semantic.daemon.probe import DaemonInfo, DaemonProbe
from otterwiki_semantic.daemon.protocol import settings_fingerprint, socket_location
from otterwiki_semantic.daemon.serialization import (
    METRICS_TYPE,
    NOT_FOUND,
    UNDER_WAY,
    PageUrl,
    answer_json,
    insight_json,
    map_json,
    metrics_text,
    refreshed_json,
    reindex_status_json,
    related_json,
    seen_page_json,
    started_json,
    status_json,
)

__all__ = [
    "METRICS_TYPE",
    "NOT_FOUND",
    "UNDER_WAY",
    "DaemonInfo",
    "DaemonProbe",
    "IndexClient",
    "IndexService",
    "PageUrl",
    "answer_json",
    "insight_json",
    "map_json",
    "metrics_text",
    "refreshed_json",
    "reindex_status_json",
    "related_json",
    "seen_page_json",
    "settings_fingerprint",
    "socket_location",
    "started_json",
    "status_json",
]
