"""Noisy counts: what a client may release once beside its embedding, and the scores that follow from them."""
