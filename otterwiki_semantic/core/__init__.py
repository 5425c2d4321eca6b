"""Shared by all rooms: settings, errors, records, parameters. Imports nothing from the other rooms."""
