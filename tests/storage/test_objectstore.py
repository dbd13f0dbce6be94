"""Workspaces on an object store: a real client against a stand-in server on loopback."""

import os
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.commands.cli import main
from ooc_pf.storage import objectstore
from ooc_pf.storage.clients import ObstoreClient, connect
from ooc_pf.storage.manifest import MANIFEST
from ooc_pf.storage.objectstore import local_copy
from ooc_pf.storage.store_manifest import check_names
from tests.gallery import communities
from tests.properties import assert_same_bits
from tests.test_archive import ARCHIVE

pytest.importorskip("obstore")
server = pytest.importorskip("moto.server")
boto3 = pytest.importorskip("boto3")

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
    bucket = f"bucket-{os.urandom(4).hex()}"
    boto3.client("s3").create_bucket(Bucket=bucket)
    return f"s3://{bucket}/run.pf"


def names(store):
    return set(connect(store).sizes())


def elsewhere(store, tmp_path, monkeypatch, name="there"):
    """Go on as another machine would: without the working copy."""
    monkeypatch.setenv("OOC_PF_CACHE", str(tmp_path / name))


def test_a_run_goes_on_from_another_machine(store, small, tmp_path, monkeypatch):
    whole = pf.metric_nearness(small, tol=1e-5)
    pf.metric_nearness(small, tol=1e-5, workspace=store, max_iter=3)
    held = names(store)
    assert {name.split("/")[0] for name in held} == {MANIFEST, "commits"}
    assert not {name.split("/")[2] for name in held - {MANIFEST}} & {"scratch", "lock", "mirror.json", "probe"}
    elsewhere(store, tmp_path, monkeypatch)
    result = pf.resume(store)
    assert_same_bits(whole, result)
    assert str(result.workspace) == store
    assert len([name for name in names(store) if "/gen/" in name and name.endswith("/y/zarr.json")]) == 1
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

    def break_off(self, name, *_):
        if name == MANIFEST if part == "manifest" else "/y/" in name:
            raise OSError("connection lost")
        return put(self, name, *_)

    verb = "put_if" if part == "manifest" else "send"
    put = getattr(ObstoreClient, verb)
    with monkeypatch.context() as patch:
        patch.setattr(ObstoreClient, verb, break_off)
        patch.setattr(objectstore, "WAITS", (0.0, 0.0))
        with pytest.raises(OSError, match="connection lost"):
            pf.resume(store)
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
        "import os, sys, ooc_pf as pf\n"
        "from ooc_pf.storage.clients import ObstoreClient\n"
        "send, left = ObstoreClient.send, [int(sys.argv[2])]\n"
        "def count(self, *args):\n"
        "    left[0] -= 1\n"
        "    os._exit(9) if left[0] == 0 else send(self, *args)\n"
        "ObstoreClient.send = count\n"
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


BAD = ["../../outside", "/etc/outside", "a//b", "a/./b", "a\\..\\b", "c:/x", "a\nb", "a\x00b", "ä", "gen/x.new", "LOCK"]
BAD += ["Mirror.json", "scratch/x", "commits/x", "Edges.zarr/u/zarr.json", "edges.zarr", "history.jsonl/x"]


@pytest.mark.parametrize("name", BAD)
def test_names_that_lead_outside_or_onto_each_other_are_refused(name):
    good = ["edges.zarr/u/zarr.json", "history.jsonl", "gen/000001.zarr/y/c/0"]
    check_names(good, "s3://bucket/run.pf")
    with pytest.raises(pf.WorkspaceError, match=r"s3://bucket/run.pf: .*not a store that ooc_pf wrote"):
        check_names([*good, name], "s3://bucket/run.pf")


def test_names_on_a_store_cannot_lead_outside(store, small, tmp_path, monkeypatch):
    pf.metric_nearness(small, workspace=store, max_iter=1)
    client = connect(store)
    body, version = client.read(MANIFEST)
    client.put_if(MANIFEST, body.replace(b"history.jsonl", b"../../outside"), version)
    elsewhere(store, tmp_path, monkeypatch)
    with pytest.raises(pf.WorkspaceError, match="leads out"):
        pf.open(store)
    client.put_if(MANIFEST, body.replace(b'"commits/', b'"../commits/'), client.read(MANIFEST)[1])
    with pytest.raises(pf.WorkspaceError, match="not a folder of a commit"):
        pf.open(store)
    client.put_if(MANIFEST, body.replace(b"store-1", b"store-7"), client.read(MANIFEST)[1])
    with pytest.raises(pf.WorkspaceError, match="update ooc_pf"):
        pf.open(store)
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("link", ["mirror.json.new", "manifest.json.new", "history.jsonl.new", "gen", "edges.zarr/u"])
def test_nothing_is_written_through_a_link(store, small, tmp_path, monkeypatch, link):
    pf.metric_nearness(small, workspace=store, max_iter=1)
    elsewhere(store, tmp_path, monkeypatch)
    outside, place = tmp_path / "outside", local_copy(store) / link
    place.parent.mkdir(parents=True)
    if link.endswith(".new"):
        outside.write_text("untouched")
    else:
        outside.mkdir()
    place.symlink_to(outside)
    if link.endswith(".new"):
        assert pf.resume(store, max_iter=1).n_iter == 2
        assert outside.read_text() == "untouched"
    else:
        with pytest.raises(pf.WorkspaceError, match="symbolic link"):
            pf.open(store)
        assert not list(outside.iterdir())


def test_a_store_that_lacks_an_object_is_damaged(store, small, tmp_path, monkeypatch):
    pf.metric_nearness(small, workspace=store, max_iter=1)
    lost = next(name for name in names(store) if name.endswith("/y/c/0"))
    connect(store).delete([lost, "never/there"])
    elsewhere(store, tmp_path, monkeypatch)
    with pytest.raises(pf.WorkspaceError, match=r"y/c/0.*the store is damaged"):
        pf.open(store)


def test_a_store_of_an_older_version_opens_and_goes_on(store, tmp_path, monkeypatch):
    """Files under plain names stay where they are while they count; new ones are under the name of their commit."""
    with zipfile.ZipFile(ARCHIVE / "version2-nearness.zip") as archive:
        archive.extractall(tmp_path)
    client, folder = connect(store), tmp_path / "run.pf"
    for file in folder.rglob("*"):
        if file.is_file() and file.name != "lock":
            client.send(file.relative_to(folder).as_posix(), file)
    before = pf.open(store).n_iter
    assert pf.verify(store)["rows"] == pf.verify(folder)["rows"]
    elsewhere(store, tmp_path, monkeypatch)
    done = pf.resume(store, tol=1e-9, max_iter=1)
    assert done.n_iter == before + 1
    held = names(store)
    assert "edges.zarr/u/zarr.json" in held and not any(name.startswith("gen/") for name in held)
    elsewhere(store, tmp_path, monkeypatch, "third")
    assert_same_bits(pf.open(store), done)


def test_a_copy_of_something_that_is_gone_does_not_count(store, small):
    pf.metric_nearness(small, workspace=store, max_iter=1)
    connect(store).delete(names(store))
    assert local_copy(store).exists()
    with pytest.raises(pf.WorkspaceError, match="no such workspace"):
        pf.open(store)
    assert pf.metric_nearness(small, workspace=store).converged
    shutil.rmtree(local_copy(store))
    assert pf.open(store).converged


def test_large_files_are_sent_in_parts(store, tmp_path):
    body = np.random.default_rng(1).bytes(12_000_001)
    (tmp_path / "file").write_bytes(body)
    connect(store).send("file", tmp_path / "file")
    assert connect(store).read("file")[0] == body


def test_unknown_stores_are_refused(small):
    with pytest.raises(pf.InputError, match="not available"):
        pf.metric_nearness(small, workspace="nosuchstore://bucket/run.pf")
    with pytest.raises(pf.InputError, match=r"cannot be used.*[Aa]ccount"):
        pf.metric_nearness(small, workspace="az://container/run.pf")


def test_wrong_credentials_are_named(store, small, monkeypatch):
    def deny(*_):
        raise connect(store)._obs.exceptions.PermissionDeniedError("403 Forbidden\n\nDebug source:\nsecrets")

    monkeypatch.setattr("obstore.get", deny)
    with pytest.raises(OSError, match=r"refuses access to 'manifest.json' \(403 Forbidden\); check the credentials"):
        pf.open(store)


def test_the_cache_follows_the_platform(store, monkeypatch, tmp_path):
    assert local_copy(store).parent == tmp_path / "here"
    monkeypatch.delenv("OOC_PF_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if sys.platform == "linux":
        assert local_copy(store).parent == tmp_path / "xdg" / "ooc_pf"
    assert local_copy(tmp_path) == tmp_path
