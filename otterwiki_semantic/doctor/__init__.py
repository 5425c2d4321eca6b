"""What may be wrong with an installation, and what to do: checks that look at everything and change nothing."""
