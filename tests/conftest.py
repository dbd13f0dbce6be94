"""Fixtures that many rooms use."""

import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

import ooc_pf as pf
from tests.gallery import small_graph, symmetric
from tests.settings import Settings

SEED = 20240607


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c_works():
    """A test run started in the background may have inherited an ignored SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _every_iteration_is_committed(monkeypatch):
    Settings(monkeypatch).every_commit_at_once()


@pytest.fixture
def rng():
    return np.random.default_rng(SEED)


@pytest.fixture
def small(rng):
    """A sparse graph of 60 nodes with random targets: enough work for a dozen iterations."""
    return small_graph(rng)


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A workspace with a finished run on the small graph, to copy."""
    path = tmp_path_factory.mktemp("finished") / "run.pf"
    pf.metric_nearness(small_graph(np.random.default_rng(SEED)), tol=1e-8, workspace=path)
    return path


@pytest.fixture
def solved(finished, tmp_path):
    """A finished run on the small graph, to do anything with."""
    return shutil.copytree(finished, tmp_path / "run.pf")


@pytest.fixture
def table(rng):
    """A table of 30 points, cut into many small tiles, with work for a dozen iterations."""
    return symmetric(rng, 30, 0.2, 3.0)


@pytest.fixture
def mutate(monkeypatch):
    """Changes that get past the checksums; see `tools/mutate.py`."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "tools")
    import mutate

    return mutate


@pytest.fixture
def settings(monkeypatch):
    """Tuning numbers of the package that a test may change; see `tests.settings`."""
    return Settings(monkeypatch)
