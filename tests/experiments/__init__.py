"""Tests of the room experiments."""
