"""What becomes of a list of edges, with dictionaries."""

import numpy as np


def merged(rows, kind, policy):
    """What convert should make of (a, b, value) rows, with dictionaries."""
    votes = {}
    for a, b, value in rows:
        if a != b and not (kind == "signed" and value == 0):
            votes.setdefault((min(a, b), max(a, b)), []).append(value)
    merge = {
        "mean": lambda values: sum(values) / len(values),
        "sum": sum,
        "first": lambda values: values[0],
        "sign": lambda values: float(np.sign(sum(np.sign(values)))),
    }[policy]
    edges = {pair: merge(values) for pair, values in votes.items()}
    return {pair: value for pair, value in edges.items() if kind == "distance" or value != 0}
