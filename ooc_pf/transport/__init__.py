"""Quadratically regularised transport: rows are pairs of points."""
