"""Graphs laid out for disk: the same answers, and the same bits under any budget."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.cycles.disk_layout import build_external_graph
from ooc_pf.cycles.graph import Graph
from ooc_pf.engine import store as constraints
from ooc_pf.storage.memory import Budget
from ooc_pf.storage.vectors import Vector
from tests.gallery import communities, random_graph
from tests.properties import assert_same_bits

SOLVERS = {"clustering": pf.correlation_clustering, "nearness": pf.metric_nearness}

TIGHT = Budget(rows=1 << 20, vectors=1 << 19, slots=2, build=1 << 16)


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=30, deadline=None)
def test_the_layout_has_every_arc_and_closer_once(seed, signed):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 30))
    u, v = random_graph(rng, nodes, int(rng.integers(1, 60)))
    value = rng.normal(size=len(u))
    with tempfile.TemporaryDirectory() as folder:
        build_external_graph(Path(folder), Vector.of(u), Vector.of(v), Vector.of(value), nodes, signed=signed,
                             memory=int(rng.integers(1, 5000)))  # fmt: skip
        graph = Graph.read(Path(folder))
    tail = np.repeat(np.arange(nodes), np.diff(graph.arc_start))
    arcs = {(int(a), int(b), int(e)) for a, b, e in zip(tail, graph.arc_node.whole, graph.arc_edge.whole, strict=True)}
    walked = np.flatnonzero(value > 0) if signed else np.arange(len(u))
    assert arcs == {(int(u[e]), int(v[e]), int(e)) for e in walked} | {(int(v[e]), int(u[e]), int(e)) for e in walked}
    assert graph.arcs == len(arcs)
    source = np.repeat(graph.sources, np.diff(graph.closer_start))
    closers = zip(source, graph.closer_node.whole, graph.closer_edge.whole, strict=True)
    closed = np.flatnonzero(value < 0) if signed else np.arange(len(u))
    assert sorted(e for *_, e in closers) == closed.tolist()
    for a, b, e in zip(source, graph.closer_node.whole, graph.closer_edge.whole, strict=True):
        assert {int(a), int(b)} == {int(u[e]), int(v[e])}


@pytest.mark.long
@pytest.mark.parametrize("problem", SOLVERS)
def test_the_layout_does_not_change_the_answer(problem, rng, tmp_path):
    graph = communities(rng, 150, 8, signed=problem == "clustering")
    inside = SOLVERS[problem](graph, tol=1e-7)
    outside = SOLVERS[problem](graph, tol=1e-7, external=True, workspace=tmp_path / "run.pf")
    assert outside.converged
    assert outside.objective == pytest.approx(inside.objective, rel=1e-6)
    assert outside.lower_bound == pytest.approx(inside.lower_bound, rel=1e-6)
    for oracle in ("igraph", "numba"):
        assert pf.verify(tmp_path / "run.pf", oracle=oracle)["violation_of_x"] <= 1e-9


# Solves the workspace named, and is killed when so many parts of arcs were scanned for trees.
KILLED = """
import os, signal, sys
import ooc_pf as pf
from ooc_pf.kernels import lanes
from ooc_pf.storage.memory import Budget
left, scan = int(sys.argv[2]), lanes.relax_arcs
def relax_arcs(*arguments):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return scan(*arguments)
lanes.relax_arcs = relax_arcs
pf.resume(sys.argv[1], memory=Budget(rows=1 << 20, vectors=1 << 19, slots=2, build=1 << 16))
"""


@pytest.mark.long
@pytest.mark.faults
def test_a_kill_in_the_middle_of_a_scan_costs_nothing_but_the_time_since_the_last_commit(rng, tmp_path):
    """Arcs come in pages of which two are held; the scans of a pass of trees are cut off at different places."""
    graph = communities(rng, 6000, 32, signed=True)
    killed, whole = tmp_path / "killed.pf", tmp_path / "whole.pf"
    begin = {"external": True, "memory": TIGHT, "callback": lambda record: record["stage"] == "trees"}
    for path in (killed, whole):
        pf.correlation_clustering(graph, workspace=path, **begin)
    before = pf.open(killed).n_iter
    for scans in (3, 40):
        done = subprocess.run([sys.executable, "-c", KILLED, killed, str(scans)], capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
    end = {"memory": None, "callback": lambda record: record["iteration"] >= before + 2}
    assert_same_bits(pf.resume(whole, **end), pf.resume(killed, **end))


@pytest.mark.long
@pytest.mark.parametrize("problem", SOLVERS)
def test_any_budget_gives_the_same_bits(problem, rng, tmp_path):
    """Large enough for several pages of arcs and of vectors; both runs are stopped and resumed."""
    graph = communities(rng, 6000, 32, signed=problem == "clustering")
    assert len(graph[0]) > 65536

    def run(path, workers, memory=None):
        options = {"external": True, "workspace": path, "memory": memory}
        SOLVERS[problem](graph, callback=lambda record: record["iteration"] >= 2, **options)
        return pf.resume(path, callback=lambda record: record["iteration"] >= 4, workers=workers, memory=memory)

    whole = run(tmp_path / "whole.pf", 2)
    paged = run(tmp_path / "paged.pf", 1, TIGHT)
    assert sum(record["read_bytes"] for record in paged.history) > 0
    assert_same_bits(whole, paged)
    if problem == "clustering":
        assert np.array_equal(whole.labels, paged.labels)
    assert pf.verify(tmp_path / "paged.pf", oracle="numba", memory=TIGHT)["rows"] == paged.n_active


@pytest.mark.long
@pytest.mark.parametrize("problem", SOLVERS)
def test_blocks_swept_side_by_side_give_the_same_bits(problem, rng, tmp_path, monkeypatch, settings):
    graph = communities(rng, 1500, 12, signed=problem == "clustering")
    settings.small_blocks(20, page=128)
    together, visit = [], constraints.ConstraintStore.visit

    def watched(self, numbers, then=()):
        together.append(len(numbers))
        return visit(self, numbers, then)

    monkeypatch.setattr(constraints.ConstraintStore, "visit", watched)

    def run(name, workers):
        together.clear()
        return SOLVERS[problem](graph, external=True, workspace=tmp_path / name, workers=workers,
                                callback=lambda record: record["iteration"] >= 4)  # fmt: skip

    one = run("one.pf", 1)
    assert max(together) == 1
    three = run("three.pf", 3)
    assert max(together) == 3
    assert_same_bits(one, three)


def test_more_rows_than_may_be_taken_up_at_once_are_taken_up_in_part(rng, tmp_path, settings):
    graph = communities(rng, 400, 10, signed=True)
    settings.few_rows_at_once(50)
    where = {"external": True, "workspace": tmp_path / "few.pf"}
    few = pf.correlation_clustering(graph, gamma=1.0, **where, callback=lambda record: True)
    assert few.n_iter == 1
    assert 0 < few.history[0]["found"] <= 50
    assert few.lower_bound > 0


@pytest.mark.parametrize("options", [{"base": -0.1}, {"oracle": "igraph"}])
def test_what_cannot_be_laid_out_for_disk_is_said(options, rng, tmp_path):
    graph = communities(rng, 50, 8, signed=True)
    with pytest.raises(pf.InputError, match="external=True is for"):
        pf.correlation_clustering(graph, external=True, workspace=tmp_path / "run.pf", **options)
    with pytest.raises(pf.InputError, match="workspace="):
        pf.correlation_clustering(graph, external=True)
