"""What the parts share: wikis, servers, clients, percentiles, the report."""
