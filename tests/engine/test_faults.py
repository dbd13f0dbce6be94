"""Faults of every kind: after each the workspace is valid, and what resumes ends with the same bits."""

import os
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.storage import workspace as ws
from ooc_pf.storage.arrays import ArrayWriter
from tests.gallery import CASES, ON_DISK, communities, go_on
from tests.properties import assert_same_bits, assert_same_run, run_among_kills

pytestmark = pytest.mark.faults

SCRIPT = Path(__file__).parents[2] / "tools" / "faults.py"


@pytest.fixture
def faults(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    import faults

    return faults


WRITES = (
    "nearness", "external", "complete", "clustering-external", "table", "rows", "sets", "svm-npy", "itml", "transport",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "every"), [("table", 41), *(pytest.param(n, 1, marks=pytest.mark.slow) for n in WRITES)]
)
def test_every_write_may_fail(faults, tmp_path, name, every):
    """Of runs of few iterations; those that take many, with the same kinds of writes, are left to the script."""
    facts = faults.write_campaign(tmp_path, every, faults.small.CASES[name])
    assert facts["writes"] > 100


@pytest.mark.slow
def test_hundreds_of_kills_lose_nothing():
    done = subprocess.run(
        [os.sys.executable, SCRIPT, "--kills", "200", "--every", "1000"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "kills 200" in done.stdout


@pytest.fixture
def small_disk(tmp_path):
    """A file system of half a megabyte, where the system lets us make one."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", place], capture_output=True)
    if made.returncode:
        pytest.skip("no permission to mount a small file system")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_stops_a_run_that_resumes_when_there_is_room(small_disk, rng, tmp_path):
    graph = communities(rng, 1500, 20, signed=False)
    run = small_disk / "run.pf"
    with pytest.raises(OSError, match="No space left"):
        pf.metric_nearness(graph, workspace=run)
    if not run.exists():
        pytest.fail("the disk was too small even for the edges; make it larger")
    subprocess.run(["mount", "-o", "remount,size=200m", small_disk], check=True)
    assert_same_bits(pf.metric_nearness(graph), pf.metric_nearness(graph, workspace=run))


def test_a_read_only_disk_can_be_read_and_says_why_it_cannot_be_written(small_disk, small):
    path = small_disk / "run.pf"
    pf.metric_nearness(small, workspace=path, max_iter=3)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(OSError, match="Read-only file system"):
        pf.resume(path)
    assert pf.open(path).n_iter == 3
    assert pf.verify(path, oracle="numba")["rows"] > 0
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    assert_same_bits(pf.metric_nearness(small), pf.resume(path))


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anything")
def test_a_workspace_without_permission_says_so(solved):
    for entry in [solved, *solved.rglob("*")]:
        entry.chmod(0o555 if entry.is_dir() else 0o444)
    with pytest.raises(PermissionError):
        pf.resume(solved, tol=1e-12)
    assert pf.open(solved).converged


def test_truncated_chunks_are_found(small, tmp_path):
    path = tmp_path / "run.pf"
    pf.metric_nearness(small, workspace=path, max_iter=3)
    chunks = [file for file in sorted((path / "gen").rglob("c/*")) if file.is_file()]
    assert len(chunks) > 3
    for chunk in chunks:
        content = chunk.read_bytes()
        chunk.write_bytes(content[: len(content) // 2])
        with pytest.raises(pf.WorkspaceError):
            pf.verify(path, oracle="numba")
        chunk.write_bytes(content)
    pf.verify(path, oracle="numba")


def test_a_clock_that_jumps_does_not_matter(small, tmp_path, monkeypatch):
    whole = pf.metric_nearness(small, tol=1e-8)
    ticks = iter(np.random.default_rng(0).uniform(-1e9, 1e9, 100_000))
    monkeypatch.setattr(time, "time", lambda: next(ticks))
    pf.metric_nearness(small, tol=1e-8, workspace=tmp_path / "run.pf", max_iter=3, max_time=3600)
    assert_same_bits(whole, pf.resume(tmp_path / "run.pf", max_time=3600))


def test_names_cannot_lead_outside(small, tmp_path):
    """A workspace whose parts are links to elsewhere is refused, and nothing there is touched."""
    path, elsewhere = tmp_path / "run.pf", tmp_path / "elsewhere"
    pf.metric_nearness(small, workspace=path, max_iter=3)
    for name in ("gen", "graph.zarr", "feasible"):
        (path / name).rename(elsewhere)
        (path / name).symlink_to(elsewhere)
        before = sorted(file.stat().st_mtime_ns for file in elsewhere.rglob("*"))
        with pytest.raises(pf.WorkspaceError, match="symbolic link"):
            pf.resume(path)
        assert sorted(file.stat().st_mtime_ns for file in elsewhere.rglob("*")) == before
        (path / name).unlink()
        elsewhere.rename(path / name)
    pf.verify(path, oracle="numba")


def test_failing_writes_lose_at_most_one_iteration(small, tmp_path, monkeypatch):
    """Let each kind of write fail in turn; the workspace stays valid and the run goes on to the same bits."""
    path = tmp_path / "run.pf"
    pf.metric_nearness(small, tol=1e-8, workspace=path, max_iter=0)
    for owner, name in ((ArrayWriter, "append"), (ws, "flush"), (ws, "replace_file")):
        for skip in range(3):
            real, calls = getattr(owner, name), iter([None] * skip)

            def broken(*args, real=real, calls=calls, **more):
                try:
                    next(calls)
                except StopIteration:
                    raise OSError(28, "No space left on device") from None
                return real(*args, **more)

            monkeypatch.setattr(owner, name, broken)
            with pytest.raises(OSError, match="No space"):
                pf.resume(path)
            monkeypatch.undo()
            pf.verify(path, oracle="numba")
    assert_same_bits(pf.metric_nearness(small, tol=1e-8), pf.resume(path))


@pytest.mark.parametrize(
    ("name", "kills"),
    [("nearness", 5), ("table", 2), *(pytest.param(name, 40, marks=pytest.mark.slow) for name in CASES)],
)
def test_kills_at_random_moments_lose_nothing(name, kills, tmp_path):
    """Killed again and again without warning, the run still ends with the bits of one that was left alone."""
    path = tmp_path / "run.pf"
    run_among_kills(name, path, kills)
    pf.verify(path, oracle="numba")
    result = go_on(name, path)
    pf.verify(path)
    whole = {} if name not in ON_DISK else {"workspace": tmp_path / "whole.pf"}
    assert_same_run(CASES[name](**whole), result)
