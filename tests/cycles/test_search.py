"""Searches for violated cycles: all of them, the worst of them, and the same by either engine."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.cycles.frozen import TreeRules
from ooc_pf.cycles.inputs import load_edges
from ooc_pf.cycles.lane_search import label_nodes
from ooc_pf.cycles.passes import freeze
from ooc_pf.cycles.search import Found, NumbaOracle, SearchRules, all_sources, cut
from ooc_pf.cycles.search_igraph import IgraphSearcher
from ooc_pf.cycles.stored import load_point, load_program
from ooc_pf.cycles.tree_search import BestRows
from ooc_pf.engine.parallel import worker_pool
from ooc_pf.engine.rows import Rows
from ooc_pf.kernels import lanes, paths
from ooc_pf.kernels.paths import UNLIMITED
from ooc_pf.problems.clustering import clustering_program
from ooc_pf.problems.nearness import nearness_program
from ooc_pf.storage.vectors import Pool, Vector
from ooc_pf.storage.workspace import Workspace
from tests import naive
from tests.gallery import random_signed
from tests.parts import as_edges


def test_engines_agree_on_which_edges_are_violated_and_by_how_much(small, tmp_path):
    pf.metric_nearness(small, workspace=tmp_path / "run.pf", max_iter=2)
    place = Workspace(tmp_path / "run.pf")
    program = load_program(place, nearness_program, load_edges(place, Pool()), Pool())
    y = load_point(program, place, Pool()).y
    with worker_pool(1, processes=False) as pool:
        batches = NumbaOracle(program.graph, pool, 1).find(
            freeze(program, y), all_sources(program.graph), rules=SearchRules(UNLIMITED, 1, 1e-12),
            tick=lambda: True, stop=np.zeros(1, np.uint8),
        )  # fmt: skip
        found = Found.join(list(batches))
    parts = [
        IgraphSearcher(place.graph).search(place.generation, "y", (1.0, 0.0, -np.inf), block, 1e-12)
        for block in cut(all_sources(program.graph), 32)
    ]
    assert np.concatenate([part.reach for part in parts]) == pytest.approx(found.reach, abs=1e-12)
    closed = [part.rows.edges[part.rows.start[:-1]] for part in parts]
    assert set(np.concatenate(closed)) == set(found.rows.edges[found.rows.start[:-1]])
    assert len(found.rows) > 5
    assert np.concatenate([part.peak for part in parts]) == pytest.approx(found.peak, abs=1e-12)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_search_finds_every_close_pair_once(seed):
    """The discovering kernel against distances by the textbook."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 12))
    u, v, weight = random_signed(rng, nodes, int(rng.integers(2, 25)), mean=0.4)
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
    distance = naive.graphs.distances(nodes, u[attractive], v[attractive], x[attractive])
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
            made, measure = oracle._all_scratch[0].lanes(lanes.WIDE), lanes.exact_measure(1.0, leaves + 1)
            limit = np.array([lanes.limit_of(1.0, measure)])
            label_nodes(oracle._arcs, made, np.array([leaves], np.int32), limit, measure, np.zeros(1, np.uint8))
            reached = made.label[:, 0] < lanes.far(made.label)
            assert set(np.flatnonzero(reached)) == {0, *range(page + 1, leaves + 1)}
            return
        place = np.flatnonzero(program.graph.sources == page + 1)
        found = Found.join(list(oracle.find(frozen, place, rules=SearchRules(UNLIMITED, 1, 1e-9),
                                            tick=lambda: True, stop=np.zeros(1, np.uint8))))  # fmt: skip
    assert found.pairs.tolist() == [[page + 1, far] for far in range(page + 2, leaves + 1)]


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


@pytest.mark.parametrize("most", [20, 100, 10_000])
def test_what_trees_find_does_not_depend_on_how_many_are_grown_at_once(rng, most):
    """Also where there are more violated rows than may be taken up, and only some closing edges are looked at."""
    u, v, weight = random_signed(rng, 200, 1500, mean=0.2)
    program = clustering_program(1.0, None)(as_edges(u, v, weight, 200), None, None, Pool())
    point = Vector.of(np.round(rng.random(len(u)) * rng.integers(0, 2, len(u)) / 4, 2))
    roots, found = np.arange(0, program.graph.nodes, 20)[:12], []
    with worker_pool(2, processes=False) as pool:
        for width, workers in ((1, 1), (4, 2), (16, 1)):
            oracle = NumbaOracle(program.graph, pool, workers, width=width)
            rules = {"penalty": 0.03, "slack": 1e-9, "most": most, "tick": lambda: True}
            found.append(oracle.find_by_trees(freeze(program, point), roots, **rules))
    assert 0 < len(found[0].rows) <= most
    for other in found[1:]:
        assert np.array_equal(other.rows.edges, found[0].rows.edges)
        assert np.array_equal(other.violation, found[0].violation)


@pytest.mark.parametrize("penalty", [0.0, 0.03])  # without a penalty many ways cost the same
@pytest.mark.parametrize("most", [20, 10_000])
def test_groups_of_trees_that_are_grown_alone_find_the_same_together(rng, most, penalty):
    """As workers of a cluster grow them, who know nothing of each other's rows."""
    u, v, weight = random_signed(rng, 200, 1500, mean=0.2)
    program = clustering_program(1.0, None)(as_edges(u, v, weight, 200), None, None, Pool())
    frozen = freeze(program, Vector.of(np.round(rng.random(len(u)) * rng.integers(0, 2, len(u)) / 4, 2)))
    roots = np.arange(0, program.graph.nodes, 20)[:10]
    with worker_pool(2, processes=False) as pool:
        oracle, rules = NumbaOracle(program.graph, pool, 2, width=4), {"penalty": penalty, "slack": 1e-9, "most": most}
        whole = oracle.find_by_trees(frozen, roots, **rules, tick=lambda: True)
        forest = oracle.plant(frozen, TreeRules(**rules, seed=int(roots[0])))
        for width in (1, 3, 10):
            best = BestRows(min(most, program.graph.closers), most)
            for first in range(0, len(roots), width):
                alone = oracle.grow_alone(forest, roots[first : first + width], first)
                assert len(alone.rows) <= most
                best.merge(alone)
            found = best.rows().found
            assert len(whole.rows) > 0 and np.array_equal(found.rows.start, whole.rows.start)
            assert np.array_equal(found.rows.edges, whole.rows.edges)
            assert np.array_equal(found.violation, whole.violation)
