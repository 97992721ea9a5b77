"""A run: what was trained, what everybody saw of it, and the directory that keeps both."""
