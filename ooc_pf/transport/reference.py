"""Transport on the general engine, as in the paper: one row for each pair, found by a scan, and projections."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ..engine.certificate import relative_gap
from ..engine.result import Held, Result
from ..engine.rows import Rows
from ..oracles import Oracle
from ..oracles import Task as RowTask
from . import settings
from .crew import Crew
from .exact import Look, value_exact
from .inputs import Task
from .levels import Level
from .marginals import meet_marginals
from .plan import Transport, made_of
from .soft import bound_soft, value_soft
from .store import PairStore

Problem = tuple[np.ndarray, float, Any]


def soft_problem(task: Task, gamma: float) -> Problem:
    """The dual, min 1/2 |z - gamma (a, b)|^2 with f_i + h_j <= C_ij: centre, weight and oracle."""
    return gamma * np.concatenate([task.a, task.b]), 1.0, scan_pairs(task)


def scan_pairs(task: Task) -> Oracle:
    """The rows f_i + h_j <= C_ij that a point (f, h) violates; a row's key is its place in the matrix of costs."""
    n, m = task.costs.shape

    def read(z: np.ndarray, rows: slice, columns: slice) -> Rows:
        cost = task.costs.block(rows, columns)
        left, right = np.nonzero(z[rows, None] + z[n:][None, columns] > cost)
        edges = np.column_stack([rows.start + left, n + columns.start + right]).astype(np.int32)
        key = (rows.start + left) * m + columns.start + right
        start = np.arange(0, edges.size + 1, 2)
        none = np.zeros(len(left), np.bool_)
        return Rows(start, edges.ravel(), np.ones(edges.size), cost[left, right], none, key.astype(np.uint64))

    def tasks(z: np.ndarray, generator: np.random.Generator) -> Iterable[RowTask]:
        side = settings.BLOCK
        for i in range(0, n, side):
            for j in range(0, m, side):
                yield partial(read, z, slice(i, min(i + side, n)), slice(j, min(j + side, m)))

    return Oracle(f"scan of {n} x {m} pairs", tasks, variables=n + m)


def soft_result(task: Task, gamma: float, found: Result) -> Result:
    """The multipliers are gamma times the plan."""
    n, m = task.costs.shape
    key = np.array(sorted(found.duals), np.int64)
    store = PairStore(task.costs)
    store.append((key // m, key % m, task.costs.of_pairs(key // m, key % m)))
    store.p = np.array([max(found.duals[k], 0.0) for k in key.tolist()])
    plan = Transport.of_store(task, store, 1.0 / gamma)
    worst = task.costs.search(found.x[:n], found.x[n:], 1, 0.0, Crew()).worst
    z = found.x - 0.5 * max(worst, 0.0)
    return shown(found, task, plan, value_soft(plan, gamma), bound_soft(task, gamma, z), z, max(worst, 0.0))


def exact_problem(task: Task, reg: float) -> Problem:
    """The plan itself, min reg/2 |P + C / reg|^2 with its marginals and P >= 0: centre, weight and table."""
    n, m = task.costs.shape
    cost = task.costs.block(slice(0, n), slice(0, m))
    return -cost.ravel() / reg, reg, marginal_rows(task)


def marginal_rows(task: Task) -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
    """A table (A, b, equality) over the entries of the plan: its marginals, and that it is not negative."""
    n, m = task.costs.shape
    rows = sparse.kron(sparse.eye_array(n), np.ones((1, m)))
    columns = sparse.kron(np.ones((1, n)), sparse.eye_array(m))
    A = sparse.vstack([rows, columns, -sparse.eye_array(n * m)]).tocsr()
    equality = np.arange(n + m + n * m) < n + m
    return A, np.concatenate([task.a, task.b, np.zeros(n * m)]), equality


def exact_result(task: Task, reg: float, found: Result) -> Result:
    """The multipliers of the marginals are minus the potentials."""
    n, m = task.costs.shape
    z = -np.array([found.duals.get(k, 0.0) for k in range(n + m)])
    matrix = np.maximum(found.x.reshape(n, m), 0.0)
    left, right = np.nonzero(matrix)
    plan = meet_marginals(task, left, right, matrix[left, right], task.costs.of_pairs(left, right), route=True)
    bound = Look.at(Level(task.a, task.b, task.costs), z, reg, Crew()).value
    return shown(found, task, plan, value_exact(plan, reg), bound, z, plan.missing)


def shown(
    found: Result, task: Task, plan: Transport, value: float, bound: float, z: np.ndarray, violation: float
) -> Result:
    """The result of the general engine in the terms of transport."""
    made = made_of(task, plan, z)
    return replace(
        found, problem="transport", made=made, read_x=Held(made["plan"]), objective=value, lower_bound=bound,
        gap=relative_gap(value, bound), violation=violation,
    )  # fmt: skip
