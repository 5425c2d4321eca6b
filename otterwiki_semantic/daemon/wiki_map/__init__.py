"""The map of the wiki: pages related in meaning are close together."""
