"""`fedkge data ...`: named data sets, what a graph holds, and splits into shards."""
