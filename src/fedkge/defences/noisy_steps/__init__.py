"""Noisy steps: every step clips the gradients of single triples and adds Gaussian noise to the rows that it releases.

Before the first step a client may release noisy counts. The paper's `dpsgd`, `dp-flames` and `dp-flames-adaptive` are
presets. Proofs: docs/proofs/dense.md, adafest.md, ptr.md, counts.md, composition.md.
"""
