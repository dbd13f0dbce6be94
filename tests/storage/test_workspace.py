"""The workspace: commits are atomic, damage is found, and nobody works in it twice."""

import json
import multiprocessing
import shutil
import threading
import time

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.storage import arrays
from ooc_pf.storage import workspace as ws


def test_a_build_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), ws.building(tmp_path / "w") as partial:
        (partial / "file").write_text("x")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with ws.building(tmp_path / "w") as partial:
        (partial / "file").write_text("x")
    with pytest.raises(pf.WorkspaceError, match="already exists"), ws.building(tmp_path / "w"):
        pass
    assert (tmp_path / "w" / "file").read_text() == "x"


def test_disk_use_stays_at_one_generation(solved):
    assert len(list((solved / "gen").iterdir())) == 1
    assert len(list((solved / "feasible").iterdir())) == 1
    assert {entry.name for entry in solved.iterdir()} == {
        "manifest.json", "history.jsonl", "lock", "edges.zarr", "graph.zarr", "gen", "feasible",
    }  # fmt: skip


def hold(path, ready, done):
    with ws.Workspace(path).locked():
        ready.set()
        done.wait(30)


@pytest.mark.long
def test_a_second_process_is_refused(solved):
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    process = context.Process(target=hold, args=(solved, ready, done))
    process.start()
    try:
        assert ready.wait(60)
        with pytest.raises(pf.WorkspaceBusyError, match="in use by another process"):
            pf.resume(solved)
        assert pf.open(solved).converged  # looking is allowed
    finally:
        done.set()
        process.join()
    assert pf.resume(solved).converged


def flip_byte(file, at):
    data = bytearray(file.read_bytes())
    data[at] ^= 0x10
    file.write_bytes(data)


@pytest.mark.parametrize("array", ["y", "rows/dual", "rows/index", "rows/table"])
def test_a_flipped_byte_is_found(solved, array):
    chunk = next(path for path in sorted((next((solved / "gen").iterdir()) / array / "c").iterdir()))
    flip_byte(chunk, 11)
    with pytest.raises(pf.WorkspaceError, match="damaged"):
        pf.verify(solved)
    with pytest.raises(pf.WorkspaceError, match="damaged"):
        pf.resume(solved)


@pytest.mark.parametrize(("array", "change"), [("y", 1e-6), ("rows/dual", 1e-6)])
def test_a_wrong_value_with_a_right_checksum_is_found(solved, array, change):
    group = next((solved / "gen").iterdir())
    values = arrays.read_array(group, array)
    values[len(values) // 2] += change
    shutil.rmtree(group / array)
    arrays.write_array(group, array, values)
    with pytest.raises(pf.WorkspaceError, match="does not follow from the duals"):
        pf.verify(solved)


def test_a_missing_chunk_is_found(solved):
    shutil.rmtree(next((solved / "gen").iterdir()) / "y" / "c")
    with pytest.raises(pf.WorkspaceError):
        pf.verify(solved)


def test_an_infeasible_answer_is_found(solved):
    group = next((solved / "feasible").iterdir())
    x = arrays.read_array(group, "x")
    shutil.rmtree(group / "x")
    arrays.write_array(group, "x", np.where(np.arange(len(x)) == np.argmax(x), x + 1e-3, x))
    with pytest.raises(pf.WorkspaceError, match=r"objective|feasible"):
        pf.verify(solved)


def test_a_sound_workspace_verifies(solved):
    report = pf.verify(solved)
    assert report["status"] == "converged"
    assert report["drift"] < 1e-10 and report["violation_of_x"] < 1e-12


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "damaged"),
        ("[]", "not written by this program"),
        ('{"format": "other"}', "not written by this program"),
        ('{"format": "ooc_pf workspace", "version": 99}', "version 99"),
        ('{"format": "ooc_pf workspace", "version": 1}', "lacks"),
    ],
)
def test_foreign_or_damaged_manifests_are_named(solved, text, words):
    (solved / "manifest.json").write_text(text)
    with pytest.raises(pf.WorkspaceError, match=words):
        pf.open(solved)


def test_a_manifest_cannot_lead_outside(solved):
    manifest = json.loads((solved / "manifest.json").read_text())
    (solved / "manifest.json").write_text(json.dumps({**manifest, "generation": "../../elsewhere"}))
    with pytest.raises(pf.WorkspaceError, match="generation is"):
        pf.open(solved)
    (solved / "manifest.json").write_text(json.dumps(manifest))
    (solved / "gen").rename(solved.parent / "elsewhere")
    (solved / "gen").symlink_to(solved.parent / "elsewhere")
    with pytest.raises(pf.WorkspaceError, match="symbolic link"):
        pf.resume(solved)


def test_what_is_not_there_is_named(tmp_path, small):
    with pytest.raises(pf.WorkspaceError, match="no such workspace"):
        pf.open(tmp_path / "nothing.pf")
    (tmp_path / "plain").mkdir()
    with pytest.raises(pf.WorkspaceError, match="not a workspace"):
        pf.solve(tmp_path / "plain")
    u, v, d = small
    ws.create_workspace(tmp_path / "signed.pf", u, v, d, np.arange(60), kind="signed", source={})
    with pytest.raises(pf.WorkspaceError, match="kind='signed'"):
        pf.metric_nearness(tmp_path / "signed.pf")
    with pytest.raises(pf.WorkspaceError, match="no run yet"):
        pf.resume(tmp_path / "signed.pf")
    with pytest.raises(pf.WorkspaceError, match="holds no run yet"):
        pf.open(tmp_path / "signed.pf")


@pytest.mark.long
def test_every_missing_chunk_is_found(small, tmp_path):
    """An array without one of its files must never be read as zeros."""
    path = tmp_path / "run.pf"
    pf.metric_nearness(small, tol=1e-3, workspace=path)
    chunks = sorted(file for file in path.rglob("c/*") if file.is_file())
    assert len(chunks) > 15
    for chunk in chunks:
        content = chunk.read_bytes()
        chunk.unlink()
        if "labels" not in chunk.parts:
            with pytest.raises(pf.WorkspaceError, match="missing"):
                pf.verify(path)
        with pytest.raises(pf.WorkspaceError, match="missing"):
            pf.open(path) if "feasible" in chunk.parts or "labels" in chunk.parts else pf.resume(path, tol=1e-9)
        chunk.write_bytes(content)
    assert pf.verify(path)["status"] == "running", "another tolerance was asked for, and not reached"
    assert pf.resume(path).converged
    assert pf.verify(path)["status"] == "converged"


@pytest.mark.long
def test_readers_follow_a_writer(small, tmp_path):
    """What is read while a solve replaces generations is one state or the next, never an error."""
    path = tmp_path / "run.pf"
    pf.metric_nearness(small, tol=1e-12, workspace=path, max_iter=1)
    # Slow enough that there is something to read beside it, whatever else the machine does.
    writer = threading.Thread(target=lambda: pf.resume(path, callback=lambda record: time.sleep(0.3)))
    writer.start()
    looks = 0
    while writer.is_alive():
        assert pf.verify(path, oracle="numba", workers=1)["drift"] < 1e-9
        assert len(pf.open(path).x) == 240
        looks += 1
    writer.join()
    assert looks > 2
    assert pf.open(path).converged


@pytest.mark.parametrize(
    "change",
    [
        {"graph": None}, {"graph": {}}, {"problem": "x"}, {"problem": {"name": "nearness"}}, {"plan": None},
        {"certificate": 3}, {"closing": []}, {"lower_bound": "x"}, {"n_active": None}, {"status": 5}, {"answer": 3},
        {"generation": True}, {"iteration": -1},
    ],
    ids=str,
)  # fmt: skip
def test_manifest_entries_of_the_wrong_kind_are_named(solved, change):
    manifest = json.loads((solved / "manifest.json").read_text())
    (solved / "manifest.json").write_text(json.dumps(manifest | change))
    for use in (pf.open, pf.resume, pf.verify):
        with pytest.raises(pf.WorkspaceError, match=r"damaged|has no answer|missing"):
            use(solved)


def test_two_builds_under_one_name(tmp_path):
    with ws.building(tmp_path / "w") as partial:
        with pytest.raises(pf.WorkspaceBusyError), ws.building(tmp_path / "w"):
            pass
        assert partial.exists()
    (tmp_path / "v.partial").mkdir()
    (tmp_path / "v.partial" / "left by a killed process").touch()
    with ws.building(tmp_path / "v") as partial:
        assert [entry.name for entry in partial.iterdir()] == ["lock"]
