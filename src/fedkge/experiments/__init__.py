"""Whatever runs a federation in order to attack or audit it: canaries, shadows, forks, audits of runs."""
