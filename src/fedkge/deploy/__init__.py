"""Federations on several machines: the engine that carries messages, the alignment of names, and the site's policy."""
