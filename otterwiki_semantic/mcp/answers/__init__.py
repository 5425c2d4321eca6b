"""Answers of the tools, within a token budget."""
