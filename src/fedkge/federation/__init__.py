"""Federations: clients, server, rounds, what everyone saw, and runs that survive a crash."""
