"""The public face: what a Python caller and the command line use."""
