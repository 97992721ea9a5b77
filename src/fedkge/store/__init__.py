"""Files that last: durable writes, keys, fingerprints, and where randomness comes from."""
