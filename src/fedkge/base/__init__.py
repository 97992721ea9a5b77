"""Helpers that every room may import: errors, registries, text, small files."""
