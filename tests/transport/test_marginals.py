"""Any plan becomes one with the right marginals, and close ones stay close."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ooc_pf.transport.inputs import read_task
from ooc_pf.transport.marginals import meet_marginals
from ooc_pf.transport.plan import staircase


def task_of(rng, n, m):
    a, b = rng.random(n) * 10.0 ** -rng.integers(0, 25, n), rng.random(m)
    return read_task(a * (b.sum() / a.sum()), b, rng.random((n, m)), "sqeuclidean")


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 1000), st.integers(1, 12), st.integers(1, 12), st.floats(0, 1), st.booleans())
def test_any_masses_on_any_pairs_are_mended(seed, n, m, part, route):
    rng = np.random.default_rng(seed)
    task = task_of(rng, n, m)
    key = np.flatnonzero(rng.random(n * m) < part)
    left, right = key // m, key % m
    mass = rng.random(len(key)) * 10.0 ** -rng.integers(0, 12, len(key))
    plan = meet_marginals(task, left, right, mass, task.costs.of_pairs(left, right), route=route)
    assert (plan.mass >= 0.0).all()
    assert plan.missing <= 1e-13 * task.a.sum()
    key = plan.left * m + plan.right
    assert len(np.unique(key)) == len(key)
    assert np.isclose(plan.cost, task.costs.of_pairs(plan.left, plan.right) @ plan.mass, rtol=1e-12)


def test_what_little_is_missing_is_made_up_on_pairs_that_are_there(rng):
    a, b = np.full(20, 1 / 20), np.full(15, 1 / 15)
    task = read_task(a, b, rng.random((20, 15)), "sqeuclidean")
    left, right, mass = staircase(a, b)
    right = (right + 7) % 15  # other pairs than those that new mass is put on
    cost = task.costs.of_pairs(left, right)
    near = mass * (1.0 + 1e-9 * rng.normal(size=len(mass)))
    plan = meet_marginals(task, left, right, near, cost, route=True)
    assert plan.missing <= 1e-14 and np.allclose(plan.mass[: len(mass)], mass, rtol=1e-7)
    assert plan.mass[len(mass) :].sum() <= 1e-14
    scaled = meet_marginals(task, left, right, near, cost, route=False)
    assert scaled.missing <= 1e-14 and scaled.mass[len(mass) :].sum() > 1e-12  # which is why they are routed


@pytest.mark.parametrize("a, b", [([1.0, 2.0], [3.0]), ([0.0, 1.0, 0.0], [0.5, 0.0, 0.5]), ([1.0], [0.25, 0.25])])
def test_a_staircase_uses_up_the_lesser_side(a, b):
    left, right, mass = staircase(np.array(a), np.array(b))
    found = np.zeros((len(a), len(b)))
    found[left, right] = mass
    assert (found.sum(axis=1) <= a).all() and (found.sum(axis=0) <= b).all()
    assert found.sum() == min(sum(a), sum(b)) and len(set(zip(left, right, strict=True))) == len(left)
