"""Clustering of complete graphs that are never listed, and the linear program."""

from pathlib import Path

import igraph
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.cycles.inputs import Edges
from ooc_pf.cycles.schedule import freeze
from ooc_pf.cycles.search import Found, NumbaOracle, SearchRules, all_sources
from ooc_pf.engine.parallel import worker_pool
from ooc_pf.engine.problem import State
from ooc_pf.engine.rows import Rows
from ooc_pf.engine.store import ConstraintStore
from ooc_pf.kernels import paths, trees
from ooc_pf.kernels.paths import UNLIMITED
from ooc_pf.problems import clustering
from ooc_pf.problems.clustering import clustering_program
from ooc_pf.storage.memory import Budget
from ooc_pf.storage.vectors import Pool, Vector
from tests import naive
from tests.conftest import assert_same_bits

GRAPHS = Path(__file__).parents[2] / "shared" / "data" / "cc_lp"


def random_listed(rng, nodes, edges):
    u, v = naive.random_graph(rng, nodes, edges)
    return u, v, rng.normal(0.4, 1.0, len(u))


def as_edges(u, v, weight, nodes):
    return Edges(Vector.of(u), Vector.of(v), Vector.of(weight), nodes, lambda x: x)


def spelled_out(u, v, weight, nodes, base):
    """All pairs, the listed ones first."""
    listed = {(int(a), int(b)) for a, b in zip(u, v, strict=True)}
    rest = np.array([(a, b) for a in range(nodes) for b in range(a + 1, nodes) if (a, b) not in listed], np.int64)
    rest = rest.reshape(-1, 2)
    return np.append(u, rest[:, 0]), np.append(v, rest[:, 1]), np.append(weight, np.full(len(rest), base))


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 1.0, None]), st.sampled_from([-0.1, -1.0]))
@settings(max_examples=30, deadline=None)
def test_implicit_pairs_count_as_if_they_were_listed(seed, gamma, base):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 8))
    u, v, weight = random_listed(rng, nodes, int(rng.integers(2, 14)))
    nodes = int(v.max()) + 1
    result = pf.correlation_clustering((u, v, weight), gamma=gamma, base=base, tol=1e-8, workers=1)
    whole = spelled_out(u, v, weight, nodes, base)
    linear = naive.clustering_lp(nodes, *whole)
    value = linear if gamma is None else naive.clustering_qp(nodes, *whole, gamma)[1]
    assert result.converged
    assert result.objective == pytest.approx(value, rel=1e-6, abs=1e-6)
    assert result.lower_bound <= value + 1e-6
    assert result.lp_lower_bound <= linear + 1e-7
    best = min(naive.clustering_cost(*whole, labels) for labels in naive.partitions(nodes))
    assert result.cost == pytest.approx(naive.clustering_cost(*whole, result.labels))
    assert best - 1e-9 <= result.cost <= best * 1.05 + 1e-9


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_search_finds_every_close_pair_once(seed):
    """The discovering kernel against distances by the textbook."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 12))
    u, v, weight = random_listed(rng, nodes, int(rng.integers(2, 25)))
    nodes = int(v.max()) + 1
    program = clustering_program(1.0, -0.3)(as_edges(u, v, weight, nodes), None, None, Pool())
    x = np.round(rng.random(len(u)), 1)
    with worker_pool(1, processes=False) as pool:
        batches = NumbaOracle(program.graph, pool, 1).find(
            freeze(program, Vector.of(x)), all_sources(program.graph), rules=SearchRules(UNLIMITED, 1, 1e-9),
            tick=lambda: True, stop=np.zeros(1, np.uint8),
        )  # fmt: skip
        found = Found.join(list(batches))
    found = found.numbered(len(u))
    attractive = weight > 0
    distance = naive.distances(nodes, u[attractive], v[attractive], x[attractive])
    listed = {(int(a), int(b)) for a, b in zip(u, v, strict=True)}
    near = {(a, b) for a in range(nodes) for b in range(a + 1, nodes) if distance[a, b] < 1 - 1e-9} - listed
    assert len(found.pairs) == len(near)
    assert {(int(a), int(b)) for a, b in found.pairs} == near
    ends = np.concatenate((np.column_stack((u, v)), found.pairs))
    for edge, reach in zip(found.edge, found.reach, strict=True):
        limit = 1.0 - (x[edge] if edge < len(u) else 0.0)
        assert reach == pytest.approx(min(limit, distance[tuple(ends[edge])]), abs=1e-12)
    for i in range(len(found.rows)):
        row = found.rows.edges[found.rows.start[i] : found.rows.start[i + 1]]
        _, uses = np.unique(ends[row], return_counts=True)
        assert (uses == 2).all()


@pytest.mark.parametrize("tree", [False, True])
def test_arcs_of_a_node_that_go_on_in_the_next_page_are_walked_too(tree):
    """A star whose first page of arcs is too long to be walked, and whose second is short."""
    page = 1 << paths.PAGE_SHIFT
    leaves = page + 9
    u, v = np.zeros(leaves, np.int64), np.arange(1, leaves + 1)
    program = clustering_program(1.0, -0.3)(as_edges(u, v, np.ones(leaves), leaves + 1), None, None, Pool())
    frozen = freeze(program, Vector.of(np.where(v <= page, 0.95, 0.1)))
    with worker_pool(1, processes=False) as pool:
        oracle = NumbaOracle(program.graph, pool, 1)
        if tree:
            oracle.lay_out(frozen)
            grown = np.empty((leaves + 1, 3), np.int32)
            trees.grow_tree(leaves, 1.0, 0.0, 0, program.graph.arc_start, oracle._arcs.whole,
                            oracle._all_scratch[0].labels, grown)  # fmt: skip
            assert set(np.flatnonzero(grown[:, 0] >= 0)) == {0, *range(page + 1, leaves + 1)}
            return
        place = np.flatnonzero(program.graph.sources == page + 1)
        found = Found.join(list(oracle.find(frozen, place, rules=SearchRules(UNLIMITED, 1, 1e-9),
                                            tick=lambda: True, stop=np.zeros(1, np.uint8))))  # fmt: skip
    assert found.pairs.tolist() == [[page + 1, far] for far in range(page + 2, leaves + 1)]


@pytest.fixture
def communities(rng):
    """Three groups, dense inside."""
    group = np.arange(45) % 3
    u, v = np.triu_indices(45, 1)
    linked = rng.random(len(u)) < np.where(group[u] == group[v], 0.6, 0.08)
    return u[linked], v[linked], rng.uniform(0.5, 1.5, linked.sum())


@pytest.mark.parametrize("gamma", [1.0, None])
def test_memory_disk_workers_and_restart_give_the_same_bits(communities, gamma, tmp_path):
    options = {"gamma": gamma, "base": -0.4, "tol": 1e-6}
    whole = pf.correlation_clustering(communities, **options, workers=1)
    assert whole.converged and whole.n_iter > 5
    assert_same_bits(whole, pf.correlation_clustering(communities, **options, workers=3))
    result = pf.correlation_clustering(communities, **options, workspace=tmp_path / "run.pf", max_iter=2)
    while not result.converged:
        result = pf.resume(tmp_path / "run.pf", max_iter=3)
    assert_same_bits(whole, result)
    assert np.array_equal(whole.labels, result.labels)
    assert whole.summary() | {"workspace": None} == result.summary() | {"workspace": None}
    for oracle in ("igraph", "numba"):
        report = pf.verify(tmp_path / "run.pf", oracle=oracle)
        assert report["violation_of_x"] <= 1e-12
        assert report["objective"] == pytest.approx(whole.objective, rel=1e-12)


@pytest.mark.parametrize("gamma", [1.0, None])
def test_igraph_engine_agrees(communities, gamma):
    options = {"gamma": gamma, "base": -0.4, "tol": 1e-6}
    igraph = pf.correlation_clustering(communities, oracle="igraph", workers=2, **options)
    numba = pf.correlation_clustering(communities, **options)
    assert igraph.objective == pytest.approx(numba.objective, rel=1e-5)


def test_a_run_that_stops_at_once_has_a_valid_answer(communities):
    result = pf.correlation_clustering(communities, base=-0.4, max_time=0)
    assert result.status == "time_limit"
    assert result.lower_bound <= result.objective < np.inf
    done = pf.correlation_clustering(communities, base=-0.4, max_iter=0)
    assert done.status == "iteration_limit"
    assert np.isfinite(done.violation)


def test_pairs_of_rows_left_out_go_and_the_others_close_ranks():
    rows = Rows(np.array([0, 3, 6]), np.array([-1, 4, 5, -3, 7, -2], np.int32))
    pairs = np.array([[0, 9], [1, 8], [2, 7]], np.int32)
    found = Found(rows, np.array([0.1, 0.6]), np.empty(0), np.array([-1, -2, -3], np.int32), np.arange(3.0), pairs, 0)
    kept = found.worst_rows(1)
    assert kept.rows.edges.tolist() == [-2, 7, -1]  # what was -3 and -2
    assert kept.edge.tolist() == [-1, -2]
    assert kept.pairs.tolist() == [[1, 8], [2, 7]]
    assert kept.reach.tolist() == [1.0, 2.0]
    assert kept.numbered(20).rows.edges.tolist() == [21, 7, 20]


@given(st.integers(0, 2**32 - 1), st.integers(0, 12))
@settings(max_examples=50, deadline=None)
def test_of_too_many_rows_the_worst_stay_with_their_pairs(seed, count):
    rng = np.random.default_rng(seed)
    rows, new = int(rng.integers(1, 12)), int(rng.integers(0, 6))
    pairs = np.column_stack((np.arange(new), 100 + np.arange(new))).astype(np.int32)
    cycles = [rng.permutation(np.arange(-new, 20))[: rng.integers(3, 6)].astype(np.int32) for _ in range(rows)]
    start = np.cumsum([0, *map(len, cycles)])
    found = Found(Rows(start, np.concatenate(cycles)), rng.integers(0, 5, rows) / 4, np.empty(0),
                  -1 - np.arange(new, dtype=np.int32), rng.random(new), pairs, 7)  # fmt: skip
    kept = found.worst_rows(count)
    order = sorted(range(rows), key=lambda row: (-found.violation[row], row))[:count]

    def named(part, row):
        """Edges as they are, new pairs by their ends and reach."""
        edges = part.rows.edges[part.rows.start[row] : part.rows.start[row + 1]].tolist()
        return [e if e >= 0 else (*part.pairs[-1 - e].tolist(), float(part.reach[-1 - e])) for e in edges]

    assert [named(kept, row) for row in range(len(kept.rows))] == [named(found, row) for row in sorted(order)]
    assert kept.violation.tolist() == [found.violation[row] for row in sorted(order)]
    if count < rows:
        used = {e for row in order for e in cycles[row].tolist() if e < 0}
        assert len(kept.pairs) == len(kept.edge) == len(kept.reach) == len(used)


@pytest.mark.parametrize("gamma", [1.0, None])
def test_more_new_pairs_than_a_pass_takes_up_come_later(communities, gamma, tmp_path, monkeypatch):
    every = pf.correlation_clustering(communities, base=-0.4, gamma=gamma, tol=1e-6)
    monkeypatch.setattr("ooc_pf.cycles.search.BATCH_PAIRS", 1)
    settings_of = clustering._settings
    monkeypatch.setattr(clustering, "_settings", lambda *args: {**settings_of(*args), "most_rows": 100})
    few = pf.correlation_clustering(communities, base=-0.4, gamma=gamma, tol=1e-6, workspace=tmp_path / "run.pf")
    assert few.converged
    assert few.history[0]["found"] <= 100 < every.history[0]["found"]
    assert few.n_iter > every.n_iter
    assert few.objective == pytest.approx(every.objective, rel=2e-6)
    assert pf.verify(tmp_path / "run.pf", oracle="igraph")["violation_of_x"] <= 1e-9


def test_too_many_pairs_for_the_memory_end_a_run_that_can_go_on(communities, tmp_path, monkeypatch):
    enough = pf.correlation_clustering(communities, base=-0.1)
    with pytest.raises(pf.BudgetError, match="least that will do"):
        pf.correlation_clustering(communities, base=-0.1, workspace=tmp_path / "run.pf", memory="1MB")
    pf.correlation_clustering(communities, base=-0.1, workspace=tmp_path / "run.pf", max_iter=1)
    listed = len(communities[0])
    with monkeypatch.context() as patch:
        patch.setattr("ooc_pf.cycles.family.share_out", lambda *_, **__: Budget(pairs=listed + 1))
        with pytest.raises(pf.BudgetError, match="resume it with more memory"):
            pf.resume(tmp_path / "run.pf")
        with pytest.raises(pf.BudgetError, match="pairs need a variable"):
            pf.correlation_clustering(communities, base=-0.1)
    assert pf.verify(tmp_path / "run.pf", oracle="numba")["rows"] > 0
    assert_same_bits(enough, pf.resume(tmp_path / "run.pf"))


def test_pairs_lose_their_variable_with_their_last_row():
    u, v = np.arange(5), np.arange(1, 6)  # a path of attractive edges
    program = clustering_program(1.0, -0.3)(as_edges(u, v, np.ones(5), 6), None, None, Pool())
    state = State(program, Vector.of(program.target.whole.copy()), ConstraintStore(), {}, Pool())
    state.admit(np.array([[0, 2], [1, 3], [2, 4], [0, 3]], np.int32))
    state.rows.append(Rows(np.array([0, 3, 6]), np.array([5, 0, 1, 7, 2, 3], np.int32)))
    for block in state.rows.blocks():
        block.dual[:] = [0.0, 0.25]
    state.adopt(state.rebuilt((block, block.dual) for block in state.rows.blocks()))
    before = state.program.bound(state.y, 0.25)
    state.rows.forget()
    state.dismiss()
    assert state.program.pairs.unlisted.tolist() == [[2, 4]]
    assert state.y.size == state.program.size == 6
    (block,) = state.rows.blocks()
    assert block.rows.edges.tolist() == [5, 2, 3]
    assert np.array_equal(state.y.whole, state.rebuilt([(block, block.dual)]).whole)
    assert state.program.bound(state.y, 0.25) == pytest.approx(before)
    assert state.rows.append(Rows(np.array([0, 3]), np.array([5, 2, 3], np.int32))) == 0  # known under its new number


@pytest.mark.parametrize("base", [0.5, np.nan, -np.inf, "x"])
def test_bad_base_is_named(communities, base):
    with pytest.raises(pf.InputError, match="base must be a finite number that is not positive"):
        pf.correlation_clustering(communities, base=base)


def test_base_zero_is_no_base(communities):
    assert_same_bits(pf.correlation_clustering(communities, base=0), pf.correlation_clustering(communities))


def test_zero_weights_are_counted_and_get_the_base(communities):
    u, v, weight = communities
    with_zero = weight.copy()
    with_zero[:5] = 0.0
    result = pf.correlation_clustering((u, v, with_zero), base=-0.4)
    assert result.zeros == 5
    alone = pf.correlation_clustering((u[5:], v[5:], weight[5:]), base=-0.4)
    assert result.objective == alone.objective


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_wang_weights_follow_the_formula(seed):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 25))
    u, v = naive.random_graph(rng, nodes, int(rng.integers(2, 60)))
    (a, b), weight, base = pf.wang_weights(v, u, nodes)
    expected = naive.wang_weights(nodes, u, v)
    assert base == pytest.approx(np.log(0.95 / 1.05))
    assert {(int(i), int(j)) for i, j in zip(a, b, strict=True)} == set(expected)
    assert weight == pytest.approx([expected[i, j] for i, j in zip(a.tolist(), b.tolist(), strict=True)])
    with pytest.raises(pf.InputError, match="n must be larger"):
        pf.wang_weights(u, v, int(v.max()))


def test_the_karate_club_has_its_known_optima():
    club = igraph.Graph.Famous("Zachary")
    u, v = np.array(club.get_edgelist()).T
    plain = pf.correlation_clustering((u, v, np.ones(len(u))), base=-1.0, gamma=None, tol=1e-6)
    assert plain.lower_bound <= 38.5 + 1e-9 <= plain.objective + 2e-9
    assert plain.objective == pytest.approx(38.5, rel=1e-6)
    (a, b), weight, base = pf.wang_weights(u, v)
    wang = pf.correlation_clustering((a, b, weight), base=base, gamma=None, tol=1e-8)
    assert wang.objective == pytest.approx(20.140386596299, rel=1e-7)
    assert wang.lower_bound == pytest.approx(20.140386596299, rel=1e-7)


KNOWN = {"dolphinsA": 79.5, "lesmisA": 91.5, "footballA": 273.0}


@pytest.mark.skipif(not GRAPHS.exists(), reason="public graphs not at hand")
@pytest.mark.parametrize("name", KNOWN)
def test_known_optima_of_the_linear_program(name):
    pairs = np.loadtxt(GRAPHS / f"{name}.txt", dtype=np.int64, comments="#")[:, :2]
    _, pairs = np.unique(pairs, return_inverse=True)
    pairs = np.unique(np.sort(pairs.reshape(-1, 2), axis=1), axis=0)
    u, v = pairs[pairs[:, 0] < pairs[:, 1]].T
    result = pf.correlation_clustering((u, v, np.ones(len(u))), base=-1.0, gamma=None, tol=1e-6)
    assert result.lower_bound <= KNOWN[name] + 1e-9 <= result.objective + 2e-9
    assert result.gap <= 1e-6
