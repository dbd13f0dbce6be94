"""Metric nearness on the complete graph, by tiles: there triangles suffice, and nothing need be searched for.

`tiles` and `rows` hold matrices and triangles in memory or in files of a pool; `program` is the problem, `inputs` and
`build` make it; `problem` and `sweeping` are what the engine runs; `solving` and `verify` work on workspaces.
"""
