"""From a question and the passages found for it to an answer whose sentences name their sources."""
