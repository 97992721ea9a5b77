"""Tests of the room defences/noisy_copy."""
