"""Attacks: what each adversary can infer from what it saw."""
