"""The kernels of transport against their textbook twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.kernels.factor import factorise, solve_factored
from ooc_pf.kernels.transport_forest import Forest, drop_negative, pivot, settle_trees, spanning_forest
from ooc_pf.kernels.transport_marginals import route_rests
from ooc_pf.kernels.transport_newton import (
    balance_points,
    balance_rows,
    balance_support,
    collect_block,
    conjugate_gradients,
    count_pairs,
)
from ooc_pf.kernels.transport_nodes import Terms, follow_path
from ooc_pf.kernels.transport_search import Best, merge_best, search_block
from ooc_pf.transport.costs import PointCosts, no_best, tree_order
from ooc_pf.transport.crew import Crew
from ooc_pf.transport.nodes import minimum_degree, prepare
from tests.naive import transport as naive

GO = np.zeros(1, np.uint8)


def random_pairs(rng, n, m, count):
    """Different pairs of n rows and m columns, as nodes."""
    key = rng.choice(n * m, size=min(count, n * m), replace=False)
    return key // m, n + key % m


def dense(left, right, nodes):
    B = np.zeros((nodes, len(left)))
    B[left, np.arange(len(left))] = B[right, np.arange(len(left))] = 1.0
    return B


# -- searches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("n, m, d", [(1, 1, 1), (7, 200, 1), (150, 90, 3), (65, 64, 2)])
def test_a_search_finds_the_largest_excesses_of_rows_and_columns(rng, n, m, d, root):
    x, y = rng.random((n, d)), rng.random((m, d))
    x, y = x[tree_order(x)], y[tree_order(y)]
    f, h, cost = rng.normal(0.0, 0.3, n), rng.normal(0.0, 0.3, m), naive.costs(x, y, root)
    found = PointCosts(x, y, root).search(f, h, 3, 0.05, Crew())
    assert set(zip(found.left.tolist(), found.right.tolist())) == naive.largest_excesses(cost, f, h, 3, 0.05)
    excess = f[:, None] + h - cost
    assert found.worst >= excess.max()
    assert excess.max() <= 0.05 or found.worst == excess.max()
    assert found.looked <= n * m


def test_what_is_skipped_is_bounded(rng):
    x, y = np.sort(rng.random((400, 1)), axis=0), np.sort(rng.random((300, 1)), axis=0)
    f, h, cost = np.full(400, 1e-3), np.full(300, 1e-3), naive.costs(x, y)
    found = PointCosts(x, y, False).search(f, h, 2, 0.0, Crew())
    assert found.looked < 0.3 * cost.size
    assert found.worst == (f[:, None] + h - cost).max()


def test_a_search_of_a_block_is_that_of_points(rng):
    x, y = rng.random((40, 2)), rng.random((30, 2))
    f, h = rng.random(40), rng.random(30)
    cost = naive.costs(x, y)
    by_row, by_column = no_best(40, 4), no_best(30, 4)
    worst = search_block(cost[:25], 0, 0, f, h, 0.1, by_row, by_column)
    later = no_best(30, 4)
    worst = max(worst, search_block(cost[25:], 25, 0, f, h, 0.1, by_row, later))
    merge_best(by_column, later)
    expected = f[:, None] + h - cost
    assert worst == expected.max()
    for best, table in ((by_row, expected), (by_column, expected.T)):
        top = -np.sort(-table, axis=1)[:, :4]
        assert np.array_equal(Best(*best).excess, np.where(top > 0.1, top, -np.inf))


@pytest.mark.parametrize("root", [False, True])
def test_the_support_is_all_pairs_with_an_excess(rng, root):
    x, y = rng.random((130, 2)), rng.random((70, 2))
    x, y = x[tree_order(x)], y[tree_order(y)]
    f, h = rng.normal(0.0, 0.2, 130), rng.normal(0.0, 0.2, 70)
    expected = np.maximum(f[:, None] + h - naive.costs(x, y, root), 0.0)
    seen = np.zeros_like(expected)
    support = PointCosts(x, y, root).support(f, h, Crew())
    seen[support.left, support.right] = support.excess
    assert np.allclose(seen, expected, rtol=0, atol=1e-15)
    block = naive.costs(x, y, root)[20:50, 10:40]
    left, right, excess = collect_block(block, 20, 10, f, h)
    seen = np.zeros_like(expected)
    seen[left, right] = excess
    assert np.allclose(seen[20:50, 10:40], expected[20:50, 10:40], rtol=0, atol=1e-15) and len(left) == np.sum(seen > 0)


# -- equations over the nodes -----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 12), st.integers(0, 60))
def test_factors_solve_equations(seed, n, m, count):
    rng = np.random.default_rng(seed)
    left, right = random_pairs(rng, n, m, count)
    weight, nodes = rng.random(len(left)) + 0.1, n + m
    matrix = np.eye(nodes) + dense(left, right, nodes) @ np.diag(weight) @ dense(left, right, nodes).T
    pattern, factor = prepare(left, right, minimum_degree(left, right, nodes))
    assert np.array_equal(np.sort(pattern.order), np.arange(nodes))
    assert factorise(pattern.start, pattern.index, weight[pattern.pair], np.diag(matrix)[pattern.order], factor)
    rhs = rng.normal(size=nodes)
    work = rhs[pattern.order]
    solve_factored(factor, work)
    x = np.empty(nodes)
    x[pattern.order] = work
    assert np.allclose(matrix @ x, rhs, atol=1e-10)


def test_a_matrix_that_is_not_positive_definite_is_told(rng):
    left, right = np.array([0]), np.array([1])
    pattern, factor = prepare(left, right, minimum_degree(left, right, 2))
    assert not factorise(pattern.start, pattern.index, np.array([2.0]), np.ones(2), factor)


def test_conjugate_gradients_solve_newtons_equations(rng):
    left, right = random_pairs(rng, 20, 15, 80)
    diagonal = count_pairs(left, right, 36) + 0.1  # the last node has no pair
    assert diagonal[35] == 1.1
    matrix = np.diag(diagonal)
    matrix[left, right] = matrix[right, left] = 1.0
    rhs = rng.normal(size=36)
    x, steps, done = conjugate_gradients(left, right, diagonal, rhs, 1e-12, 500)
    assert done and 0 < steps < 500
    assert np.allclose(matrix @ x, rhs, atol=1e-9)
    assert not conjugate_gradients(left, right, diagonal, rhs, 1e-12, 2)[2]


@pytest.mark.parametrize("soft, reg", [(1.0, 0.0), (0.5, 0.3), (1e-4, 2.0)])
def test_the_interior_point_satisfies_all_conditions(rng, soft, reg):
    left, right = random_pairs(rng, 15, 11, 90)
    cost, target, nodes = rng.random(len(left)), rng.random(26), 26
    z, p, s = np.zeros(nodes), np.ones(len(left)), np.ones(len(left))
    pattern, factor = prepare(left, right, minimum_degree(left, right, nodes))
    terms = Terms(soft, reg, 0.0, 1.0, 1.0)
    steps, gap = follow_path(left, right, cost, target, z, p, s, terms, pattern, factor, 1e-11, 100, GO)
    B = dense(left, right, nodes)
    assert steps < 40 and gap <= 1e-11
    assert np.allclose(soft * z, target - B @ p, atol=1e-9)
    assert np.allclose(s, cost + reg * p - B.T @ z, atol=1e-9)
    assert (p > 0).all() and (s > 0).all() and p @ s < 1e-9


# -- forests ----------------------------------------------------------------------------------------------------------


def forest_of(rng, n, m, count, integer):
    left, right = random_pairs(rng, n, m, count)
    cost = rng.integers(0, 4, len(left)).astype(float) if integer else rng.random(len(left))
    target, pairs = rng.random(n + m), len(left)
    return Forest(
        n, left, right, cost, np.zeros(pairs), target, np.empty(n + m), np.zeros(pairs, np.bool_),
        np.full(n + m, -1), np.full(2 * pairs, -1), np.full(2 * pairs, -1),
    )  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 12), st.integers(0, 80), st.booleans())
def test_pivots_end_at_the_optimum(seed, n, m, count, integer):
    rng = np.random.default_rng(seed)
    forest = forest_of(rng, n, m, count, integer)
    spanning_forest(forest, rng.permutation(len(forest.cost)))
    B = dense(forest.left, forest.right, n + m)
    settle_trees(forest)
    # On trees: all chosen pairs hold with equality, and z is what is left of the targets.
    assert np.allclose((B.T @ forest.z - forest.cost)[forest.member], 0.0, atol=1e-12)
    assert np.allclose(forest.z, forest.target - B @ forest.p, atol=1e-12)
    while drop_negative(forest):
        settle_trees(forest)
    done, _ = pivot(forest, 1e-14, 1000, 10**9, GO)
    settle_trees(forest)
    assert done
    assert (forest.p >= -1e-14).all() and (B.T @ forest.z <= forest.cost + 1e-13).all()
    assert np.allclose(forest.z, forest.target - B @ forest.p, atol=1e-12)
    assert np.allclose(forest.p * (forest.cost - B.T @ forest.z), 0.0, atol=1e-12)


def test_pivots_end_when_they_are_told_to(rng):
    forest = forest_of(rng, 20, 20, 300, False)
    settle_trees(forest)
    forest = forest._replace(cost=forest.cost - 2.0)
    assert pivot(forest, 0.0, 1000, 10**9, np.ones(1, np.uint8))[0] is False
    assert pivot(forest, 0.0, 1000, 5, GO)[0] is False


# -- steps of whole rows ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", [False, True])
def test_balanced_rows_have_what_they_need(rng, root):
    x, y, h = rng.random((12, 2)), rng.random((9, 2)), rng.random(9)
    need, cost = np.concatenate([rng.random(11), [0.0]]), naive.costs(x, y, root)
    for f in (balance_points(x, y, h, need, root), balance_rows(cost, h, need)):
        assert np.allclose(np.maximum(f[:, None] + h - cost, 0.0).sum(axis=1), need, atol=1e-11)
    excess = rng.random(20)
    start = np.array([0, 5, 5, 20])
    change = balance_support(start, excess, np.array([0.3, 1.0, 2.0]))
    assert np.isclose(np.maximum(excess[:5] + change[0], 0.0).sum(), 0.3)
    assert np.isclose(np.maximum(excess[5:] + change[2], 0.0).sum(), 2.0)
    assert change[1] == 0.0  # there is nothing to balance it with


# -- marginals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", [0, 5, 14, 40])
def test_rests_are_routed_along_a_forest(rng, pairs):
    n, m = 9, 7
    key = rng.permutation(n * m)[:pairs]
    left, right, order = key // m, n + key % m, rng.permutation(pairs)
    wanted = rng.normal(size=pairs)
    rest = np.bincount(left, wanted, n + m) + np.bincount(right, wanted, n + m)  # so each tree is balanced
    left_over = rest.copy()
    flow = route_rests(left, right, order, left_over)
    assert np.allclose(flow, naive.route_rests(left, right, order, rest), atol=1e-12)
    assert np.abs(left_over).max(initial=0.0) <= 1e-12


def test_what_a_tree_cannot_take_stays_at_one_of_its_nodes(rng):
    n, m, pairs = 6, 5, 8
    key = rng.permutation(n * m)[:pairs]
    left, right, rest = key // m, n + key % m, rng.normal(size=n + m)
    left_over = rest.copy()
    flow = route_rests(left, right, np.arange(pairs), left_over)
    done = np.bincount(left, flow, n + m) + np.bincount(right, flow, n + m)
    assert np.allclose(done + left_over, rest)
    taken, tree = naive.forest_of(left, right, np.arange(pairs), n + m)
    assert not flow[np.setdiff1d(np.arange(pairs), taken)].any()
    assert all(np.count_nonzero(left_over[tree == each]) <= 1 for each in set(tree))
