"""Tests of the room defences."""
