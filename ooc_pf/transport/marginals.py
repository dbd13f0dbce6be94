"""From a plan with almost the right marginals to one that has them, up to rounding: its value is an upper bound.

What a plan lacks is first routed along a forest of its own largest pairs. The price of that is small of second order:
with potentials f and h, P = max(0, f + h - C) / r and any plan Q that has the marginals,

    value(Q) - bound(f, h) = r/2 |Q - P|^2 + sum over pairs with P = 0 of (C - f - h) Q.

Then rows and columns with too much are scaled down, and what is missing is put on new pairs, row after row and column
after column (Altschuler, Weed and Rigollet). Nothing is held beyond the points and the pairs.
"""

import numpy as np

from ..kernels.transport_marginals import route_rests
from . import settings
from .inputs import Task
from .plan import Transport, staircase


def meet_marginals(
    task: Task, left: np.ndarray, right: np.ndarray, mass: np.ndarray, cost: np.ndarray, *, route: bool
) -> Transport:
    """The plan with these masses, on pairs with these costs, with its marginals mended; ``route``: by a forest, too."""
    n, m = task.costs.shape
    left, right = left.astype(np.int64), right.astype(np.int64)
    if route:
        rest = np.concatenate([task.a - np.bincount(left, mass, n), task.b - np.bincount(right, mass, m)])
        order = np.argsort(-mass, kind="stable")
        mass = np.maximum(mass + route_rests(left, right + n, order, rest), 0.0)
    mass = mass * _at_most_one(task.a, np.bincount(left, mass, n))[left]
    mass = mass * _at_most_one(task.b, np.bincount(right, mass, m))[right]
    rows, columns = task.a - np.bincount(left, mass, n), task.b - np.bincount(right, mass, m)
    more_left, more_right, more = staircase(_without_dust(rows, task.a), _without_dust(columns, task.b))
    if len(more):
        there = np.searchsorted(more_left * m + more_right, left * m + right)
        there[there == len(more)] = 0
        both = (more_left[there] == left) & (more_right[there] == right)
        mass[both] += more[there[both]]
        fresh = np.ones(len(more), np.bool_)
        fresh[there[both]] = False
        more_left, more_right, more = more_left[fresh], more_right[fresh], more[fresh]
        cost = np.concatenate([cost, task.costs.of_pairs(more_left, more_right)])
        left, right = np.concatenate([left, more_left]), np.concatenate([right, more_right])
        mass = np.concatenate([mass, more])
    return Transport.of(task, left, right, mass, cost)


def _at_most_one(wanted: np.ndarray, found: np.ndarray) -> np.ndarray:
    """What to multiply lines by that have more than wanted."""
    return np.where(found > wanted, wanted / np.where(found > 0.0, found, 1.0), 1.0)


def _without_dust(rest: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """What is missing of each line; what is rounding of its own mass is nothing."""
    return np.where(rest > settings.DUST * wanted, rest, 0.0)
