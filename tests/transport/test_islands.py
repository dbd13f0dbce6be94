"""Steps that no support tells the length of."""

import numpy as np
import pytest

from ooc_pf.transport.crew import Crew
from ooc_pf.transport.exact import Look
from ooc_pf.transport.inputs import read_task
from ooc_pf.transport.islands import find_lonely, nearest_slack, shift_islands
from ooc_pf.transport.levels import Level
from tests.naive import transport as naive


def level_of(a, b, cost):
    task = read_task(a, b, cost, "sqeuclidean")
    return Level(task.a, task.b, task.costs)


@pytest.mark.parametrize("points", [False, True])
def test_the_nearest_pair_to_reach(rng, points):
    x, y, z = np.sort(rng.random(90))[:, None], np.sort(rng.random(80))[:, None], rng.normal(size=170) - 2.0
    cost = naive.costs(x, y)
    level = level_of(np.ones(90), np.ones(80), (x, y) if points else cost)
    for part in (0.1, 0.5, 0.9):
        reaching = rng.random(170) < part
        slack = (cost - z[:90, None] - z[90:])[np.ix_(reaching[:90], ~reaching[90:])]
        assert np.isclose(nearest_slack(level, z, reaching, Crew()), max(slack.min(), 0.0), rtol=1e-12)
    assert nearest_slack(level, z, np.zeros(170, bool), Crew()) == 0.0  # nobody reaches


@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize("side", [0, 1])
def test_single_lines_get_their_best_potentials(rng, points, side):
    x, y, z = np.sort(rng.random(70))[:, None], np.sort(rng.random(60))[:, None], rng.normal(size=130)
    cost = naive.costs(x, y)
    level = level_of(np.ones(70), np.ones(60), (x, y) if points else cost)
    lines, others = np.array([3, 17, 40]), z[70:] if side == 0 else z[:70]
    need = np.array([0.01, 1.0, 20.0])
    found = level.costs.balance_lines(side, lines, others, need)
    table = (cost if side == 0 else cost.T)[lines]
    assert np.allclose(np.maximum(found[:, None] + others - table, 0.0).sum(axis=1), need)
    assert len(level.costs.balance_lines(side, lines[:0], others, need[:0])) == 0


def test_an_island_is_shifted_until_it_reaches_others():
    """Two rows and two columns near zero, one each far away, and too much mass in the near rows."""
    x, y = np.array([0.0, 0.1, 10.0]), np.array([0.0, 0.1, 10.0])
    a, b = np.array([0.4, 0.4, 0.2]), np.array([0.2, 0.2, 0.6])
    level, reg, crew = level_of(a, b, (x, y)), 0.1, Crew()
    z = np.array([0.02, 0.02, 0.02, 0.02, 0.02, 0.02])
    look = Look.at(level, z, reg, crew)
    assert set(zip(look.support.left.tolist(), look.support.right.tolist(), strict=True)) == {
        (0, 0), (0, 1), (1, 0), (1, 1), (2, 2),
    }  # fmt: skip
    moved = shift_islands(level, z, reg, look.support, look.gradient, crew)
    seen = Look.at(level, moved, reg, crew)
    assert seen.value > look.value + 10.0
    assert any(i < 2 and j == 2 for i, j in zip(seen.support.left, seen.support.right, strict=True))


def test_what_hangs_together_is_no_island(rng):
    level = level_of(np.full(5, 0.2), np.full(4, 0.25), rng.random((5, 4)))
    look = Look.at(level, np.full(9, 5.0), 0.1, Crew())
    assert shift_islands(level, np.full(9, 5.0), 0.1, look.support, look.gradient, Crew()) is None


def test_lonely_nodes_are_those_without_pairs_that_matter():
    a = np.array([0.5, 1e-30, 0.3, 0.2])
    level = level_of(a, np.array([1.0]), np.array([[0.0], [5.0], [5.0], [5.0]]))
    look = Look.at(level, np.array([1.0, 0.0, 0.0, 0.0, 0.0]), 1.0, Crew())
    assert find_lonely(look.support, 0, level.a, look.missing, 5).tolist() == [2, 3]
    assert find_lonely(look.support, 1, level.b, look.missing, 5).tolist() == []
