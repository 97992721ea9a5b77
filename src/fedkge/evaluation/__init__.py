"""Filtered ranking on both sides, and the popularity control that every utility number stands beside."""
