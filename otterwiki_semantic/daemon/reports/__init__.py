"""Reports on the daemon's work: insight, search log, Prometheus metrics, slow searches."""
