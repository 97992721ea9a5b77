"""Defences: what each releases, what that costs, and how a client trains under it."""
