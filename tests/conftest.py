"""Fixtures that many rooms use."""

import signal

import numpy as np
import pytest

import ooc_pf as pf
from tests.gallery import random_graph, symmetric
from tests.settings import Settings


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
    u, v = random_graph(rng, 60, 240)
    return u, v, rng.random(len(u))


@pytest.fixture
def solved(small, tmp_path):
    """A workspace with a finished run on the small graph."""
    pf.metric_nearness(small, tol=1e-8, workspace=tmp_path / "run.pf")
    return tmp_path / "run.pf"


@pytest.fixture
def table(rng):
    """A table of 30 points, cut into many small tiles, with work for a dozen iterations."""
    return symmetric(rng, 30, 0.2, 3.0)


@pytest.fixture
def settings(monkeypatch):
    """Tuning numbers of the package that a test may change; see `tests.settings`."""
    return Settings(monkeypatch)
