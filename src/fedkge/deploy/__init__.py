"""Real federations: the engine that carries messages between machines, alignment of names, and what a site allows."""
