"""The command line."""

from otterwiki_semantic.cli.main import main
