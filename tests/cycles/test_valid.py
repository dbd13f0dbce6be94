"""Rows that prove nothing are told from those that do, and no bound that rests on them is accepted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.cycles import warm
from ooc_pf.cycles.inputs import read_edges
from ooc_pf.cycles.valid import are_valid
from ooc_pf.engine.rows import RowBlock, Rows
from ooc_pf.problems.clustering import clustering_program
from ooc_pf.storage.vectors import Pool
from tests import naive
from tests.gallery import random_signed


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_of_all_rows_over_a_few_edges_the_conflicted_cycles_are_valid(seed):
    rng = np.random.default_rng(seed)
    u, v, weight = random_signed(rng, 6, 10)
    edges = read_edges((u, v, weight))
    program = clustering_program(1.0)(edges, None, None, Pool())
    cycles = {frozenset(row) for row in naive.cycles.conflicted_rows(6, u, v, weight)}
    for _ in range(60):
        row = rng.choice(len(u), rng.integers(3, 6), replace=False)
        row = row[np.argsort(weight[row] > 0, kind="stable")]
        block = RowBlock.build(Rows(np.array([0, len(row)]), row.astype(np.int32)), np.ones(1), np.zeros(1, np.uint64))
        assert are_valid(block, edges, program) == (frozenset(row.tolist()) in cycles)
    for cycle in cycles:
        first, *path = sorted(cycle, key=lambda edge: weight[edge])
        rows = Rows(np.array([0, len(cycle)]), np.array([*path, first], np.int32))
        assert not are_valid(RowBlock.build(rows, np.ones(1), np.zeros(1, np.uint64)), edges, program)


@pytest.mark.parametrize("options", [{}, {"gamma": 1.0}, {"base": -0.05}])
def test_a_bound_from_cycles_without_a_conflict_is_refused(tmp_path, monkeypatch, options):
    """All numbers fit each other: only the signs along the rows tell that the bound is above the truth."""
    rng = np.random.default_rng(3)
    u, v, weight = random_signed(rng, 12, 40)
    pf.correlation_clustering((u, v, weight), workspace=tmp_path / "old.pf", tol=1e-4, **options)
    other = np.where(rng.random(len(u)) < 0.4, -weight, weight)
    monkeypatch.setattr(warm, "_turned", lambda rows, dual, repels: (rows, dual))
    monkeypatch.setattr(warm, "are_valid", lambda *_: True)
    how = {"warm_start": tmp_path / "old.pf", "max_iter": 0}
    false = pf.correlation_clustering((u, v, other), workspace=tmp_path / "new.pf", **how, **options)
    assert false.lower_bound > pf.correlation_clustering((u, v, other), tol=1e-4, **options).objective
    for oracle in ("numba", "igraph"):
        with pytest.raises(pf.WorkspaceError, match="a stored row is not"):
            pf.verify(tmp_path / "new.pf", oracle=oracle)
