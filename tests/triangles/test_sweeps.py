"""Sweeps with momentum: fewer of them, stops that leave a valid state, and plans of older releases."""

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.storage.workspace import Workspace
from ooc_pf.triangles import sweeps


def noisy_distances(n, seed=0):
    """Distances of random points in space, measured with large errors."""
    rng = np.random.default_rng(seed)
    points = rng.random((n, 3))
    far = np.linalg.norm(points[:, None] - points[None], axis=2)
    upper = np.triu(np.maximum(far * (1.0 + 0.8 * rng.standard_normal((n, n))), 0.0), 1)
    return upper + upper.T


def test_momentum_follows_nesterov():
    momentum, inertia = sweeps.next_momentum(1.0)
    assert (momentum, inertia) == (0.0, pytest.approx((1.0 + 5.0**0.5) / 2.0))
    for _ in range(100):
        last, (momentum, inertia) = momentum, sweeps.next_momentum(inertia)
        assert last < momentum < 1.0


def test_measured_distances_take_fewer_sweeps_with_momentum(monkeypatch):
    d = noisy_distances(80)
    with_it = pf.metric_nearness(d, tol=1e-6, workers=1)
    monkeypatch.setattr(sweeps, "next_momentum", lambda inertia: (1e-9, inertia))
    plain = pf.metric_nearness(d, tol=1e-6, workers=1, max_iter=100)
    count = [sum(record.get("sweeps", 0) for record in result.history) for result in (with_it, plain)]
    assert with_it.converged and 2 * count[0] < count[1]
    assert with_it.objective == pytest.approx(plain.objective, rel=1e-5)


def test_plans_of_older_releases_are_read(table, tmp_path):
    whole = pf.metric_nearness(table, tol=1e-9)
    pf.metric_nearness(table, tol=1e-9, workspace=tmp_path / "run.pf", max_iter=3)
    workspace = Workspace(tmp_path / "run.pf")
    problem = workspace.manifest["problem"]
    problem["options"]["settings"].pop("more_sweeps")
    workspace.commit(problem=problem, plan={**workspace.manifest["plan"], "slow": False, "stride": 8.0})
    assert np.array_equal(pf.resume(tmp_path / "run.pf").x, whole.x[np.triu_indices(30, 1)])
