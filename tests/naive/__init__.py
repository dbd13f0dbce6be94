"""Textbook versions of what the package does fast. Nothing here imports the package."""

from . import clusters, cycles, edges, graphs, itml, rows, svm, triangles

__all__ = ["clusters", "cycles", "edges", "graphs", "itml", "rows", "svm", "triangles"]
