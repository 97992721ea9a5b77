"""A run: its model, what each party saw of its training, and its directory."""
