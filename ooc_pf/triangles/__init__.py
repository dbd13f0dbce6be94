"""Metric nearness on the complete graph, by tiles: there triangles suffice, and nothing need be searched for."""
