"""Workspaces on an object store: a real client against a stand-in server on loopback."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.commands.cli import main
from ooc_pf.storage.objectstore import MANIFEST, Mirror, local_copy
from tests.gallery import communities
from tests.properties import assert_same_bits

server = pytest.importorskip("moto.server")
s3fs = pytest.importorskip("s3fs")

pytestmark = pytest.mark.server

ACCESS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture(scope="module")
def endpoint():
    served = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    served.start()
    yield "http://{}:{}".format(*served.get_host_and_port())
    served.stop()


@pytest.fixture
def store(endpoint, tmp_path, monkeypatch):
    """A bucket of its own, and working copies in a folder of their own."""
    for name, value in {**ACCESS, "AWS_ENDPOINT_URL": endpoint, "OOC_PF_CACHE": str(tmp_path / "here")}.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    bucket = f"bucket-{os.urandom(4).hex()}"
    s3fs.S3FileSystem().mkdir(bucket)
    yield f"s3://{bucket}/run.pf"
    s3fs.S3FileSystem.clear_instance_cache()


def names(store):
    files = s3fs.S3FileSystem(use_listings_cache=False).find(store)
    return {file.split("/", 2)[2] for file in files}


def elsewhere(store, tmp_path, monkeypatch, name="there"):
    """Go on as another machine would: without the working copy."""
    monkeypatch.setenv("OOC_PF_CACHE", str(tmp_path / name))


def test_a_run_goes_on_from_another_machine(store, small, tmp_path, monkeypatch):
    whole = pf.metric_nearness(small, tol=1e-5)
    pf.metric_nearness(small, tol=1e-5, workspace=store, max_iter=3)
    held = names(store)
    assert MANIFEST in held and not any(name.startswith(("scratch", "lock", "mirror")) for name in held)
    elsewhere(store, tmp_path, monkeypatch)
    result = pf.resume(store)
    assert_same_bits(whole, result)
    assert str(result.workspace) == store
    assert len([name for name in names(store) if name.startswith("gen/") and name.endswith("/y/zarr.json")]) == 1
    elsewhere(store, tmp_path, monkeypatch, "third")
    assert pf.verify(store, oracle="numba")["violation_of_x"] <= 1e-9
    assert "nearness: converged" in pf.report(store)
    assert pf.export(store, tmp_path / "x.csv") == len(small[0])


def test_convert_and_the_command_line_know_stores(store, tmp_path, capsys):
    (tmp_path / "edges.txt").write_text("a b 1\nb c 1\na c 5\n")
    assert main(["convert", str(tmp_path / "edges.txt"), store]) == 0
    assert main(["solve", store]) == 0
    assert main(["status", store]) == 0
    assert store in capsys.readouterr().out
    with pytest.raises(pf.WorkspaceError, match="already exists"):
        pf.convert(tmp_path / "edges.txt", store)
    with pytest.raises(pf.WorkspaceError, match="no such workspace"):
        pf.open(store + "2")


def test_clusters_rows_and_tables_too(store, rng, table):
    graph = communities(rng, 100, 8, signed=True)
    assert_same_bits(pf.correlation_clustering(graph), pf.correlation_clustering(graph, workspace=store))
    dense = pf.metric_nearness(table, tol=1e-4, workspace=store + "2")
    assert np.array_equal(dense.x, pf.metric_nearness(table, tol=1e-4).x)
    A, b, objective = rng.normal(size=(30, 4)), np.full(30, 0.5), pf.objectives.quadratic(rng.normal(size=4))
    result = pf.project_and_forget(objective, (A, b), workspace=store + "3")
    assert np.array_equal(result.x, pf.project_and_forget(objective, (A, b)).x)


@pytest.mark.parametrize("part", ["file", "manifest"])
def test_a_store_that_fails_loses_nothing(store, small, part, tmp_path, monkeypatch):
    """The connection breaks in the middle of a commit: the store stays valid, and the copy here goes on."""
    whole = pf.metric_nearness(small, tol=1e-5)
    pf.metric_nearness(small, tol=1e-5, workspace=store, max_iter=2)
    put = s3fs.S3FileSystem._put_file

    async def break_off(self, source, target, *args, **kwargs):
        if target.endswith(MANIFEST) if part == "manifest" else "/y/" in target:
            raise OSError("connection lost")
        return await put(self, source, target, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(s3fs.S3FileSystem, "_put_file", break_off)
        s3fs.S3FileSystem.clear_instance_cache()
        with pytest.raises(OSError, match="connection lost"):
            pf.resume(store)
    s3fs.S3FileSystem.clear_instance_cache()
    with monkeypatch.context() as patch:
        elsewhere(store, tmp_path, patch)
        assert pf.open(store).n_iter == 2
        assert pf.verify(store, oracle="numba")["rows"] > 0
    assert pf.open(store).n_iter == 3  # the copy is ahead by one iteration
    assert_same_bits(whole, pf.resume(store))
    elsewhere(store, tmp_path, monkeypatch)
    assert_same_bits(whole, pf.open(store))


def test_two_machines_cannot_both_write(store, small, tmp_path, monkeypatch):
    pf.metric_nearness(small, tol=1e-5, workspace=store, max_iter=2)

    def meanwhile(record):
        with monkeypatch.context() as patch:
            elsewhere(store, tmp_path, patch)
            pf.resume(store, max_iter=1)

    with pytest.raises(pf.WorkspaceBusyError, match="changed by another process"):
        pf.resume(store, callback=meanwhile)
    assert_same_bits(pf.metric_nearness(small, tol=1e-5), pf.resume(store))


def test_killed_while_it_sends(store, small, tmp_path, monkeypatch):
    code = (
        "import os, sys, s3fs, ooc_pf as pf\n"
        "put, left = s3fs.S3FileSystem._put_file, [int(sys.argv[2])]\n"
        "async def count(self, *args, **kwargs):\n"
        "    left[0] -= 1\n"
        "    os._exit(9) if left[0] == 0 else await put(self, *args, **kwargs)\n"
        "s3fs.S3FileSystem._put_file = count\n"
        "pf.resume(sys.argv[1], workers=1)\n"
    )
    pf.metric_nearness(small, tol=1e-5, workspace=store, max_iter=1)
    for sent in (3, 25):
        done = subprocess.run([sys.executable, "-c", code, store, str(sent)], capture_output=True, text=True)
        assert done.returncode == 9, done.stderr
        with monkeypatch.context() as patch:
            elsewhere(store, tmp_path, patch, f"after{sent}")
            assert pf.verify(store, oracle="numba")["rows"] > 0
    assert_same_bits(pf.metric_nearness(small, tol=1e-5), pf.resume(store))


def test_names_on_a_store_cannot_lead_outside(store, small, tmp_path, monkeypatch):
    pf.metric_nearness(small, workspace=store, max_iter=1)
    there = Mirror._there
    monkeypatch.setattr(Mirror, "_there", lambda self: {**there(self), "../../outside": [1, "x"]})
    elsewhere(store, tmp_path, monkeypatch)
    with pytest.raises(pf.WorkspaceError, match="leads out"):
        pf.open(store)
    assert not (tmp_path / "outside").exists()


def test_a_copy_of_something_that_is_gone_does_not_count(store, small):
    pf.metric_nearness(small, workspace=store, max_iter=1)
    s3fs.S3FileSystem().rm(store, recursive=True)
    assert local_copy(store).exists()
    with pytest.raises(pf.WorkspaceError, match="no such workspace"):
        pf.open(store)
    assert pf.metric_nearness(small, workspace=store).converged
    shutil.rmtree(local_copy(store))
    assert pf.open(store).converged


def test_unknown_stores_are_refused(small):
    with pytest.raises(pf.InputError, match="not available"):
        pf.metric_nearness(small, workspace="nosuchstore://bucket/run.pf")
