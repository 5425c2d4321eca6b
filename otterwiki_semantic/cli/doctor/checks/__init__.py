"""The checks of `doctor`, one module a subject."""
