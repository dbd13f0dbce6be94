"""Metric learning: rows are pairs of points that should be near each other, or far apart."""
