"""Correlation clustering: right values, valid bounds, clusters worth their certificate."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.cycles.arcs import Arcs, Scratch
from ooc_pf.cycles.graph import build_graph
from ooc_pf.cycles.program import linear_bound
from ooc_pf.cycles.schedule import draw_roots
from ooc_pf.kernels import trees
from tests import naive
from tests.conftest import assert_same_bits


def random_signed(rng, nodes, edges):
    u, v = naive.random_graph(rng, nodes, edges)
    return u, v, rng.normal(0.2, 1.0, len(u))


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 1.0, 4.0]))
@settings(max_examples=30, deadline=None)
def test_agrees_with_independent_solvers_on_all_conflicted_cycles(seed, gamma):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 8))
    u, v, weight = random_signed(rng, nodes, int(rng.integers(3, 16)))
    result = pf.correlation_clustering((u, v, weight), gamma=gamma, tol=1e-8, workers=1)
    f, value = naive.clustering_qp(nodes, u, v, weight, gamma)
    assert result.converged
    assert result.objective == pytest.approx(value, rel=1e-6, abs=1e-6)
    assert result.lower_bound <= value + 1e-6
    assert result.x == pytest.approx(np.clip(np.where(weight > 0, f, 1 - f), 0, 1), abs=1e-3)
    linear = naive.clustering_lp(nodes, u, v, weight)
    best = min(naive.clustering_cost(u, v, weight, labels) for labels in naive.partitions(nodes))
    assert result.lp_lower_bound <= linear + 1e-7
    assert linear <= best + 1e-7
    assert result.cost == pytest.approx(naive.clustering_cost(u, v, weight, result.labels))
    assert best - 1e-9 <= result.cost <= best * 1.05 + 1e-9
    if result.cost > 0:
        assert result.certified_ratio == pytest.approx(result.cost / result.lp_lower_bound)
        assert result.certified_ratio >= 1 - 1e-9
    # What the fractional solution costs in the linear program is within the a-priori ratio of its optimum.
    assert naive_linear_cost(result.x, weight) <= result.apriori_ratio * linear + 1e-5


@pytest.mark.parametrize("seed, gamma", [(262, 0.5), (351, 1.0)])
def test_nothing_violated_but_the_bound_behind_is_no_reason_to_go_round_in_circles(seed, gamma):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 8))
    graph = random_signed(rng, nodes, int(rng.integers(3, 16)))
    result = pf.correlation_clustering(graph, gamma=gamma, tol=1e-8, workers=1, max_iter=60)
    assert result.converged


def naive_linear_cost(x, weight):
    return float(np.where(weight > 0, weight * x, -weight * (1 - x)).sum())


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_lp_bound_is_the_best_scaling(seed):
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.1, 2.0, 12)
    load = np.where(rng.random(12) < 0.3, 0.0, rng.uniform(0.0, 3.0, 12))
    duals = float(rng.uniform(0.1, 1.0) * load.sum())
    found = linear_bound(lambda: [(weight, load)], duals)
    scales = np.linspace(0.0, 50.0, 20001)
    tried = scales * duals + np.minimum(0.0, weight[:, None] - scales * load[:, None]).sum(axis=0)
    assert found >= tried.max() - 1e-9
    assert found <= tried.max() + 0.01 * load.sum() + 1e-9


def test_roots_are_drawn_where_the_multipliers_are(rng):
    u, v = naive.random_graph(rng, 30, 120)
    graph, load = build_graph(u, v, 30), np.zeros(len(u))

    def draw(seed):
        program = SimpleNamespace(graph=graph, cost_and_load=lambda y, unit: [(np.ones(len(u)), load)])
        return draw_roots(program, None, 4, np.random.default_rng(seed))

    assert len(draw(0)) == 4  # before there are any, anywhere
    loaded = graph.arc_edge.whole[:3]
    load[loaded] = [1.0, 1000.0, 1.0]
    tail = np.repeat(np.arange(graph.nodes), np.diff(graph.arc_start))
    ends = {int(node) for node in tail[np.isin(graph.arc_edge.whole, loaded)]}
    heavy = {int(node) for node in tail[graph.arc_edge.whole == loaded[1]]}
    for seed in range(20):
        roots = draw(seed).tolist()
        assert len(set(roots)) == len(roots) == min(4, len(ends))
        assert set(roots) <= ends and heavy <= set(roots)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_trees_find_real_short_cycles(seed):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(4, 14))
    u, v = naive.random_graph(rng, nodes, int(rng.integers(5, 40)))
    x = rng.random(len(u)) * 0.3
    graph = build_graph(u, v, nodes)
    if not len(graph.sources):
        return
    arcs = Arcs(graph)
    arcs.set_lengths(x.__getitem__)
    scratch = Scratch(graph.nodes)
    near = np.repeat(graph.sources, np.diff(graph.closer_start))
    roots = rng.integers(0, graph.nodes, 3)
    forest = np.empty((3, graph.nodes, 3), np.int32)
    for k, root in enumerate(roots):
        trees.grow_tree(root, 100.0, 0.0, 1, graph.arc_start, arcs.whole, scratch.labels, forest[k])
    limit = np.full(len(near), 100.0)
    best, length = np.empty(len(near), np.int32), np.empty(len(near))
    trees.best_trees(near, graph.closer_node.whole, limit, 0.0, x, forest, best, length)
    start = np.empty(int((best >= 0).sum()) + 1, np.int64)
    trees.tree_rows(near, graph.closer_node.whole, graph.closer_edge.whole, best, forest, start, np.empty(0, np.int32))
    entries = np.empty(start[-1], np.int32)
    trees.tree_rows(near, graph.closer_node.whole, graph.closer_edge.whole, best, forest, start, entries)
    dist = naive.distances(nodes, u, v, x)
    hit = np.flatnonzero(best >= 0)
    for i, pair in enumerate(hit):
        row = entries[start[i] : start[i + 1]]
        a, b = u[row[0]], v[row[0]]
        assert length[pair] == pytest.approx(x[row[1:]].sum())
        assert length[pair] >= dist[a, b] - 1e-12
        ends = np.bincount(np.concatenate((u[row[1:]], v[row[1:]])), minlength=nodes)
        if len(row) > 2:  # a path between the ends of the closing edge; a tree may also hold that edge itself
            assert set(np.flatnonzero(ends % 2)) == {a, b}
        if roots[best[pair]] in (near[pair], graph.closer_node.whole[pair]):
            assert length[pair] == pytest.approx(dist[a, b])


@pytest.fixture
def signed(rng):
    u, v, weight = random_signed(rng, 60, 300)
    return u, v, weight


def test_memory_disk_workers_and_restart_give_the_same_bits(signed, tmp_path):
    whole = pf.correlation_clustering(signed, tol=1e-6, workers=1)
    assert whole.n_iter > 8
    assert_same_bits(whole, pf.correlation_clustering(signed, tol=1e-6, workers=3))
    result = pf.correlation_clustering(signed, tol=1e-6, workspace=tmp_path / "run.pf", max_iter=2)
    while not result.converged:
        result = pf.resume(tmp_path / "run.pf", max_iter=3)
    assert_same_bits(whole, result)
    assert np.array_equal(whole.labels, result.labels)
    assert whole.summary() | {"workspace": None} == result.summary() | {"workspace": None}
    assert np.array_equal(pf.open(tmp_path / "run.pf").labels, whole.labels)
    assert pf.verify(tmp_path / "run.pf")["violation_of_x"] <= 1e-12


def test_igraph_engine_agrees(signed):
    numba = pf.correlation_clustering(signed, tol=1e-6)
    igraph = pf.correlation_clustering(signed, tol=1e-6, oracle="igraph", workers=2)
    assert igraph.objective == pytest.approx(numba.objective, rel=1e-5)
    assert igraph.x == pytest.approx(numba.x, abs=1e-2)


def test_no_repulsion_gives_components_and_no_attraction_singletons():
    u, v = np.array([0, 1, 3]), np.array([1, 2, 4])
    together = pf.correlation_clustering((u, v, np.ones(3)))
    assert together.labels.tolist() == [0, 0, 0, 1, 1]
    assert (together.cost, together.certified_ratio, together.status) == (0.0, 1.0, "converged")
    apart = pf.correlation_clustering((u, v, -np.ones(3)))
    assert apart.labels.tolist() == [0, 1, 2, 3, 4]
    assert (apart.cost, apart.certified_ratio) == (0.0, 1.0)


def test_zero_weights_are_no_edges(signed):
    u, v, weight = signed
    holes = weight.copy()
    holes[::7] = 0.0
    result = pf.correlation_clustering((u, v, holes), tol=1e-6)
    kept = holes != 0
    alone = pf.correlation_clustering((u[kept], v[kept], holes[kept]), tol=1e-6)
    assert np.array_equal(result.x[kept], alone.x)
    assert np.isnan(result.x[~kept]).all()


@pytest.mark.parametrize(
    ("graph", "options", "words"),
    [
        (None, {"gamma": 0}, "gamma must be"),
        (None, {"gamma": -1.0}, "gamma must be"),
        (None, {"gamma": np.nan}, "gamma must be"),
        (None, {"oracle": "none"}, "oracle must be"),
        ((np.array([0]), np.array([1]), np.array([np.nan])), {}, "not a finite number"),
        (np.zeros((1, 1)), {}, "needs two"),
    ],
)
def test_bad_input_is_named(signed, graph, options, words):
    with pytest.raises(pf.InputError, match=words):
        pf.correlation_clustering(signed if graph is None else graph, **options)


def test_a_workspace_of_distances_is_refused(small, tmp_path):
    pf.metric_nearness(small, workspace=tmp_path / "run.pf", max_iter=1)
    with pytest.raises(pf.WorkspaceError, match="needs kind='signed'"):
        pf.correlation_clustering(tmp_path / "run.pf")


def test_an_interrupted_run_has_bounds_but_takes_no_time_for_clusters(signed, tmp_path):
    import os
    import signal

    def interrupt(record):
        if record["iteration"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    result = pf.correlation_clustering(signed, tol=1e-6, workspace=tmp_path / "run.pf", callback=interrupt)
    assert result.status == "interrupted"
    assert result.labels is None
    assert result.lp_lower_bound > 0
    assert np.all((result.x >= 0) & (result.x <= 1))
    with pytest.raises(pf.WorkspaceError, match="no clusters"):
        pf.export(tmp_path / "run.pf", tmp_path / "c.csv", clusters=True)
    assert_same_bits(pf.resume(tmp_path / "run.pf"), pf.correlation_clustering(signed, tol=1e-6))


def test_a_run_killed_before_its_answer_says_so_and_makes_it_later(signed, tmp_path, monkeypatch):
    path = tmp_path / "run.pf"
    with monkeypatch.context() as patch:
        patch.setattr("ooc_pf.cycles.family.commit_answer", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
        with pytest.raises(RuntimeError, match="killed"):
            pf.correlation_clustering(signed, tol=1e-6, workspace=path)
    with pytest.raises(pf.WorkspaceError, match="no answer yet"):
        pf.open(path)
    with pytest.raises(pf.WorkspaceError, match="no answer yet"):
        pf.export(path, tmp_path / "a.csv")
    result = pf.resume(path)
    assert result.converged
    assert np.array_equal(result.labels, pf.correlation_clustering(signed, tol=1e-6).labels)
