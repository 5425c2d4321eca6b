"""Measurements of what the project promises; `bench` runs them."""
