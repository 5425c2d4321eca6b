"""The plugin's own pages."""
