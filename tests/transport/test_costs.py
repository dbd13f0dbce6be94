"""Costs by blocks, orders of points, and coarser problems."""

import numpy as np
import pytest

from ooc_pf.transport.blocks import BlockCosts
from ooc_pf.transport.costs import LEAF, PointCosts, tree_order, unique_pairs
from ooc_pf.transport.crew import Crew
from ooc_pf.transport.inputs import read_blocks, read_task
from ooc_pf.transport.levels import levels_of
from ooc_pf.transport.plan import northwest_corner, unpack
from tests.gallery import colour_cloud
from tests.naive import transport as naive


def block_costs(cost, sides=(16, 24)):
    return BlockCosts.of(read_blocks(cost, cost.shape), sides, cost.shape)


@pytest.mark.parametrize("n, d", [(1, 3), (8, 2), (100, 1), (333, 3)])
def test_an_order_of_points_is_one_and_keeps_neighbours_together(rng, n, d):
    points = rng.random((n, d))
    order = tree_order(points)
    assert np.array_equal(np.sort(order), np.arange(n))
    if n > 100:
        blocks = [points[order][k : k + LEAF] for k in range(0, n, LEAF)]
        assert np.mean([np.ptp(block, axis=0).max() for block in blocks]) < 0.5


def test_costs_of_pairs_blocks_and_searches_have_the_same_bits(rng):
    x, y = rng.random((50, 3)), rng.random((40, 3))
    for root in (False, True):
        points = PointCosts(x, y, root)
        cost = points.block(slice(0, 50), slice(0, 40))
        left, right = rng.integers(0, 50, 99), rng.integers(0, 40, 99)
        assert np.array_equal(points.of_pairs(left, right), cost[left, right])
        assert np.array_equal(block_costs(cost).of_pairs(left, right), cost[left, right])
        f, h = rng.random(50), rng.random(40)
        for ours, theirs in zip(
            (points.search(f, h, 3, 0.1, Crew()), points.support(f, h, Crew())),
            (block_costs(cost).search(f, h, 3, 0.1, Crew()), block_costs(cost).support(f, h, Crew())),
            strict=True,
        ):
            assert set(zip(ours.left.tolist(), ours.right.tolist(), strict=True)) == set(
                zip(theirs.left.tolist(), theirs.right.tolist(), strict=True)
            )


def test_the_ends_of_costs_are_bounds(rng):
    x, y = rng.random((50, 3)), rng.random((40, 3)) + np.array([2.0, 0.0, 0.5])
    for root in (False, True):
        points = PointCosts(x, y, root)
        cost = points.block(slice(0, 50), slice(0, 40))
        assert 0.0 < points.ends[0] <= cost.min() < cost.max() <= points.ends[1]
        assert block_costs(cost).ends == (cost.min(), cost.max())


def test_blocks_that_cannot_matter_are_not_read(rng):
    cost, read = np.add.outer(np.arange(64.0), np.arange(64.0)), []

    def block(rows, columns):
        read.append((rows.start, columns.start))
        return cost[rows, columns]

    costs = BlockCosts.of(block, (16, 16), cost.shape)
    assert len(read) == 16 and costs.ends == (0.0, 126.0)
    read.clear()
    found = costs.search(np.full(64, 8.0), np.full(64, 8.0), 1, 0.0, Crew())
    assert read == [(0, 0)] and found.worst == 16.0


def test_coarser_problems_have_the_same_mass(rng):
    n, m = 1100, 300
    task = read_task(rng.random(n), rng.random(m), (colour_cloud(rng, n), colour_cloud(rng, m)), "sqeuclidean")
    levels = levels_of(task)
    assert [level.costs.shape for level in levels] == [(1100, 300), (275, 75), (69, 19)]
    for level in levels:
        assert np.isclose(level.a.sum(), task.a.sum()) and np.isclose(level.b.sum(), task.b.sum())
    cost = task.costs.block(slice(0, n), slice(0, m))
    by_blocks = block_costs(cost).every(4)
    assert np.array_equal(by_blocks.block(slice(0, 275), slice(0, 75)), cost[::4, ::4])
    f, h = rng.random(275), rng.random(75)
    rows, columns = rng.random(n), rng.random(m)
    for ours, theirs in zip(
        task.costs.balance(4, f, h, rows, columns), block_costs(cost).balance(4, f, h, rows, columns), strict=True
    ):
        assert np.allclose(ours, theirs, atol=1e-12)


def test_pairs_are_listed_once():
    left, right = unique_pairs(np.array([3, 0, 3, 0]), np.array([1, 2, 1, 0]), 5)
    assert (left.tolist(), right.tolist()) == ([0, 0, 3], [0, 2, 1])
    assert [len(side) for side in unique_pairs(np.empty(0, int), np.empty(0, int), 5)] == [0, 0]


def test_the_northwest_corner_has_the_marginals(rng):
    a, b = rng.random(30), rng.random(20)
    b *= a.sum() / b.sum()
    task = read_task(a, b, (rng.random(30), rng.random(20)), "euclidean")
    plan = northwest_corner(task)
    assert plan.missing <= 1e-14 * 30 and len(plan.mass) <= 50
    cost = naive.costs(task.costs.x, task.costs.y, True)
    assert np.isclose(plan.cost, plan.mass @ cost[plan.left, plan.right])
    again = unpack(task, plan.pack())
    assert np.array_equal(again.mass, plan.mass) and np.array_equal(again.right, plan.right)
