"""What the daemon reports of its work: insight, search log, Prometheus metrics, slow searches."""
