"""Answers of the tools, fitted to a token budget."""
