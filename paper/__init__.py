"""The paper again: the federations that its tables and figures need, what was measured, and an answer to each claim."""
