"""The map of the wiki: pages near in meaning stand near each other."""
