"""Federations: clients, server, rounds, aggregation, and the embedded engine."""
