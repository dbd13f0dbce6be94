"""Shared data and the named properties tests check."""

import multiprocessing
import os
import random
import signal

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.storage.workspace import Workspace
from tests import naive


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c_works():
    """A test run started in the background may have inherited an ignored SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)


@pytest.fixture
def small(rng):
    """A sparse graph of 60 nodes with random targets: enough work for a dozen iterations."""
    u, v = naive.random_graph(rng, 60, 240)
    return u, v, rng.random(len(u))


def assert_is_metric(nodes, u, v, x, tolerance=1e-9):
    """No path is shorter than the edge it bypasses, and no length is negative."""
    assert x.min(initial=0.0) >= 0.0
    dist = naive.distances(nodes, u, v, x)
    assert np.all(x - dist[u, v] <= tolerance)


def assert_certificate_holds(result, u, v, d, w=None):
    """The bounds are in order, belong to the answer, and follow from the duals alone."""
    w = np.ones(len(u)) if w is None else w
    value = 0.5 * float(w @ (result.x - d) ** 2)
    assert result.objective == pytest.approx(value, rel=1e-12, abs=1e-12)
    assert result.lower_bound <= result.objective + 1e-9 * max(1.0, abs(value))
    load = np.zeros(len(u))
    rows, values = result.duals.rows, result.duals.values
    assert np.all(values > 0)
    for i, z in enumerate(values):
        row = rows.edges[rows.start[i] : rows.start[i + 1]]
        load[row[0]] += z
        load[row[1:]] -= z
    x = np.maximum(d - load / w, 0.0)
    bound = 0.5 * float(w @ (x - d) ** 2) + float(load @ x)
    assert result.lower_bound == pytest.approx(bound, rel=1e-9, abs=1e-9)


def assert_same_bits(one, other):
    """Two runs ended at the same point with the same rows and duals."""
    assert np.array_equal(np.asarray(one.x), np.asarray(other.x))
    assert np.array_equal(one.duals.rows.start, other.duals.rows.start)
    assert np.array_equal(one.duals.rows.edges, other.duals.rows.edges)
    assert np.array_equal(one.duals.values, other.duals.values)
    assert (one.objective, one.lower_bound, one.n_iter) == (other.objective, other.lower_bound, other.n_iter)


def resume_and_die(path):
    pf.resume(path, workers=2)


def resume_among_kills(path, most, wait=(0.2, 0.5)):
    """Resume a run and kill it without warning, up to ``most`` times, until it is done; returns how often.

    The moments are mostly too early to get anywhere, so that they spread over all of a start and an iteration.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["ooc_pf.problems.nearness", "ooc_pf.problems.clustering", "ooc_pf.workspaces"])
    dice, before = random.Random(3), 0
    for kills in range(most):
        process = context.Process(target=resume_and_die, args=(path,))
        process.start()
        process.join(dice.uniform(*wait))
        if process.exitcode is not None:
            return kills
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        iteration = Workspace(path).manifest["iteration"]
        assert iteration >= before
        before = iteration
    return most


@pytest.fixture
def solved(small, tmp_path):
    """A workspace with a finished run on the small graph."""
    pf.metric_nearness(small, tol=1e-8, workspace=tmp_path / "run.pf")
    return tmp_path / "run.pf"


def communities(rng, nodes, degree, *, signed):
    """A graph of groups of 64 with most edges inside, and the others to groups nearby: something like locality."""
    u = np.repeat(np.arange(nodes), degree // 2)
    inside = rng.random(len(u)) < 0.8
    v = np.where(inside, u // 64 * 64 + rng.integers(0, 64, len(u)), u + rng.integers(-256, 257, len(u)))
    fine = (v >= 0) & (v < nodes) & (v != u)
    u, v, inside = u[fine], v[fine], inside[fine]
    _, first = np.unique(np.minimum(u, v) * nodes + np.maximum(u, v), return_index=True)
    u, v, inside = np.minimum(u, v)[first], np.maximum(u, v)[first], inside[first]
    size = rng.uniform(0.5, 1.5, len(u))
    return u, v, np.where(inside ^ (rng.random(len(u)) < 0.1), size, -size) if signed else size


@pytest.fixture
def table(rng):
    """A table of 30 points, cut into many small tiles, with work for a dozen iterations."""
    upper = np.triu(rng.uniform(0.2, 3.0, (30, 30)), 1)
    return upper + upper.T


@pytest.fixture
def small_tiles(monkeypatch):
    """Eight lines a tile, and workers for every round."""
    monkeypatch.setattr("ooc_pf.triangles.family.choose_side", lambda nodes: 8)
    monkeypatch.setattr("ooc_pf.triangles.sweeps.SHORT", 0)
