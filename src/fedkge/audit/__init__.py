"""Audit: numbers in, numbers out."""
