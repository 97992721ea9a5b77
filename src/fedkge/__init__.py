"""fedkge: federated knowledge-graph embedding that proves and measures what each party gives away."""
