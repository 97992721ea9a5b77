"""Tests of the room defences/counts."""
