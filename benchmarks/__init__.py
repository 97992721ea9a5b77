"""Measurements that a claim in the documentation rests on: `python -m benchmarks` lists them."""
