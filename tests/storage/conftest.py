"""A store on a stand-in server, and machines that use it."""

import pytest

import ooc_pf as pf
from tests.storage.s3_server import S3Server
from tests.storage.writers import ACCESS, URL, writers


@pytest.fixture
def s3(monkeypatch):
    with S3Server() as server:
        for name, value in {**ACCESS, "AWS_ENDPOINT_URL": server.endpoint}.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def at(tmp_path, monkeypatch):
    """Goes to a machine: a folder for working copies."""
    return lambda name: monkeypatch.setenv("OOC_PF_CACHE", str(tmp_path / name))


@pytest.fixture
def begun(s3, at, small):
    """A store with two iterations of a run, and two writers that have not read it yet."""
    at("first")
    pf.metric_nearness(small, tol=1e-5, workspace=URL, max_iter=2)
    return writers(at, URL)
