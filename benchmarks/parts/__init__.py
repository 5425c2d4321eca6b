"""One module for each part: its `measure` yields figures with their targets."""
