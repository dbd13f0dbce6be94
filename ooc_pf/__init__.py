"""Project and forget, out of core: convex problems with more constraints than anyone can list."""

from .problems.nearness import metric_nearness

__all__ = ["metric_nearness"]
