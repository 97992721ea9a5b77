"""Vectors out, for other programs, and in, to start a training from: always by name. Nothing is pickled."""

from fedkge.runs.vectors.exporting import ENDINGS, FORMATS, Exported, export_vectors
from fedkge.runs.vectors.reading import Vectors, matches, read_vectors, start_vectors

__all__ = [
    "ENDINGS",
    "FORMATS",
    "Exported",
    "Vectors",
    "export_vectors",
    "matches",
    "read_vectors",
    "start_vectors",
]
