"""The plugin's part of the wiki's web server: who may ask, and the routes under ``/api/v1``."""
