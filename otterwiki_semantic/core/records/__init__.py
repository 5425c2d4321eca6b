"""The records exchanged between rooms. Records that leave the process are the JSON of the API: see `core.serialization`."""

from otterwiki_semantic.core.records.ask import *
from otterwiki_semantic.core.records.document import *
from otterwiki_semantic.core.records.health import *
from otterwiki_semantic.core.records.insight import *
from otterwiki_semantic.core.records.oauth import *
from otterwiki_semantic.core.records.pages import *
from otterwiki_semantic.core.records.request_parameters import *
from otterwiki_semantic.core.records.search import *
from otterwiki_semantic.core.records.status import *
from otterwiki_semantic.core.records.wiki_map import *
