"""What a solve hands back: only what applies, readable, and whole when it is copied or pickled."""

import copy
import json
import math
import pickle
import re

import numpy as np
import pytest
from scipy import sparse

import ooc_pf as pf
from ooc_pf.engine.result import COMMON, Result

CLUSTERING = (
    "labels", "cost", "lp_lower_bound", "certified_ratio", "optimal", "proven_nodes", "apriori_ratio",
    "paper_ratio", "zeros",
)  # fmt: skip

SUMMARY = {"status", "objective", "lower_bound", "gap", "violation", "n_iter", "n_active", "workspace"}


def nearness(workspace=None):
    u, v = np.triu_indices(12, 1)
    keep = np.arange(len(u)) % 3 > 0
    d = np.random.default_rng(0).uniform(0.1, 1.0, keep.sum())
    return pf.metric_nearness((u[keep], v[keep], d), workspace=workspace)


def table(workspace=None):
    return pf.metric_nearness(np.abs(pf.random_dissimilarities(9, "I", seed=1)), workspace=workspace)


def clustering(workspace=None):
    u, v = np.triu_indices(8, 1)
    weight = np.where(u // 4 == v // 4, 1.0, -1.0) * np.random.default_rng(1).uniform(0.5, 1.5, len(u))
    weight[::5] *= -1.0
    return pf.correlation_clustering((u, v, weight), gamma=1.0, workspace=workspace)


def rows(workspace=None):
    objective = pf.objectives.quadratic(np.array([1.0, 2.0, 3.0]))
    return pf.project_and_forget(objective, (np.eye(3), np.array([0.5, 5.0, 1.0])), workspace=workspace)


def sets(workspace=None):
    objective = pf.objectives.quadratic(np.array([3.0, 1.0]))
    return pf.project_onto_sets(objective, [pf.sets.ball([0.0, 0.0], 1.0), pf.sets.box(0.0, 2.0)], workspace=workspace)


ADDED = {
    nearness: set(),
    table: {"closure_distance"},
    clustering: set(CLUSTERING),
    rows: set(),
    sets: set(),
}
every_kind = pytest.mark.parametrize("solve", ADDED, ids=lambda solve: solve.__name__)


def assert_same(one, other):
    """Two results say the same, rows and multipliers included."""
    assert one.summary() == other.summary()
    assert (one.problem, one.history, one.keyed) == (other.problem, other.history, other.keyed)
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.nodes, other.nodes)
    assert one.made.keys() == other.made.keys()
    assert all(np.array_equal(one.made[name], other.made[name]) for name in one.made)
    blocks = list(one.blocks()), list(other.blocks())
    assert len(blocks[0]) == len(blocks[1])
    for a, b in zip(*blocks, strict=True):
        assert all(np.array_equal(getattr(a, name), getattr(b, name)) for name in a.fields)
    if isinstance(one.duals, dict):
        assert one.duals.keys() == other.duals.keys()
        assert all(np.array_equal(one.duals[key], other.duals[key]) for key in one.duals)
    else:
        assert np.array_equal(one.duals.values, other.duals.values)
        assert np.array_equal(one.duals.rows.edges, other.duals.rows.edges)


@every_kind
def test_a_result_has_what_applies_to_its_problem_and_nothing_else(solve):
    result = solve()
    assert set(result.made) == ADDED[solve]
    for name in (*COMMON, *ADDED[solve]):
        assert name in dir(result)
        getattr(result, name)
    for name in ({*CLUSTERING, "closure_distance", "plan", "potentials"}) - ADDED[solve]:
        assert not hasattr(result, name)
        assert name not in dir(result)
    with pytest.raises(
        AttributeError, match=f"this result of {result.problem} has no potentials; it has: x, objective"
    ):
        _ = result.potentials


def test_the_violation_of_a_table_is_its_closure_distance():
    result = table()
    assert result.violation == result.closure_distance < 1e-8
    assert "closure distance" in repr(result)


@every_kind
def test_the_summary_keeps_its_keys(solve, tmp_path):
    for workspace in (None, tmp_path / "run.pf"):
        result = solve(workspace)
        more = set(result.summary()) - SUMMARY
        assert set(result.summary()) >= SUMMARY
        assert more == ADDED[solve] - {"labels"}, "numbers that the problem adds, and nothing else"
        json.dumps(result.summary(), allow_nan=False)


@every_kind
def test_it_prints_as_a_table_of_aligned_lines(solve, tmp_path):
    result = solve(tmp_path / "a & b.pf")
    lines = repr(result).splitlines()
    column = {re.match(r"(\S+ )+ +", line).end() for line in lines}
    assert len(column) == 1
    names = [line[: column.copy().pop()].strip() for line in lines]
    assert names[:5] == ["problem", "status", "objective", "lower bound", "gap"]
    assert names[-3:] == ["iterations", "constraints remembered", "workspace"]
    assert ("clusters" in names) == ("certified ratio" in names) == (solve is clustering)
    assert f"{result.objective:.10g}" in lines[2]
    assert str(tmp_path / "a & b.pf") in lines[-1]
    shown = result._repr_html_()
    assert shown.startswith("<table>") and shown.count("<tr>") == len(lines)
    assert "a &amp; b.pf" in shown and "a & b.pf" not in shown


def test_what_was_not_checked_is_not_shown_as_a_number():
    result = Result("nearness", lambda: None, 2.0, 1.0, 0.5, math.inf, "time_limit", 0, 0, [], list)
    assert "not checked yet" in repr(result)
    assert "workspace" not in repr(result)
    assert result.summary()["violation"] is None


@every_kind
@pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "disk"])
def test_it_pickles_and_copies(solve, on_disk, tmp_path):
    result = solve(tmp_path / "run.pf" if on_disk else None)
    again = pickle.loads(pickle.dumps(result))
    assert_same(result, again)
    assert_same(result, pickle.loads(pickle.dumps(again)))
    for copied in (copy.copy(result), copy.deepcopy(result)):
        assert_same(result, copied)
    deep = copy.deepcopy(result)
    deep.x[...] = -1.0
    assert not np.array_equal(result.x, deep.x)
    if on_disk:
        assert_same(pf.open(tmp_path / "run.pf"), pickle.loads(pickle.dumps(pf.open(tmp_path / "run.pf"))))


def test_a_sparse_answer_pickles():
    upper = sparse.random(10, 10, 0.5, random_state=0)
    matrix = sparse.csr_matrix(sparse.triu(upper, 1) + sparse.triu(upper, 1).T)
    result = pf.metric_nearness(matrix)
    again = pickle.loads(pickle.dumps(result))
    assert np.array_equal(again.x.toarray(), result.x.toarray())


def test_an_opened_clustering_is_the_one_that_was_solved(tmp_path):
    solved, opened = clustering(tmp_path / "run.pf"), pf.open(tmp_path / "run.pf")
    assert set(opened.made) == set(solved.made) == set(CLUSTERING)
    assert np.array_equal(solved.labels, opened.labels)
    assert solved.cost == opened.cost


def test_names_of_python_are_not_mistaken_for_fields():
    result = nearness()
    assert not hasattr(result, "_repr_png_")
    assert not hasattr(result, "__array__")
    with pytest.raises(AttributeError):
        result.objective = 0.0
