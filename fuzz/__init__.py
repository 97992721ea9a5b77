"""Fuzzing with atheris: `make fuzz`. Every reader of what others wrote may raise a FedkgeError, and nothing else.

`python -m fuzz --list` names the targets; `python -m fuzz wire --seconds 600` fuzzes one of them. Corpora and findings
are kept in `.fuzz/`; `python -m fuzz wire --repeat FILE` runs a finding again without atheris.
"""
