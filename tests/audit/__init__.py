"""Tests of bounds, guesses and audits of runs."""
