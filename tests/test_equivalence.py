"""The same bits however a problem is run: in memory, on disk, by many, with little memory, in parts, among kills."""

import contextlib
import multiprocessing
import os
import re
import signal
import threading
import time

import pytest

import ooc_pf as pf
from ooc_pf import workspaces
from ooc_pf.storage.memory import Budget
from ooc_pf.storage.workspace import Workspace
from tests.gallery import CASES, ON_DISK, OWN, go_on, opened
from tests.properties import assert_same_run
from tests.settings import changed_settings

# Rows that the stores of each kind may hold in memory, so that some must wait on disk.
ROOM = {"table": 5000, "table-limits": 2000, "sets": 1000}


def make_small(settings):
    """Blocks, tiles and pieces so small that every problem has many of each."""
    settings.small_blocks()
    settings.small_tiles()
    settings.small_scans()
    settings.small_searches()
    settings.small_tiles_of_pairs()
    settings.small_levels(few=100)


@pytest.fixture(autouse=True)
def _many_small_parts(settings):
    make_small(settings)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What a case gives on disk with one worker and all the memory; each is run once."""
    known = {}

    def run(name):
        if name not in known:
            known[name] = CASES[name](workspace=tmp_path_factory.mktemp(name) / "run.pf", workers=1)
            assert known[name].converged
            assert known[name].n_iter >= 5  # or there would be nothing to divide
        return known[name]

    return run


@pytest.mark.parametrize("name", [name for name in CASES if name not in ON_DISK])
def test_memory_is_disk(name, alone):
    assert_same_run(alone(name), CASES[name](workers=1))


@pytest.mark.parametrize("name", [name for name in CASES if name not in ON_DISK])
def test_three_workers_are_one(name):
    assert_same_run(CASES[name](workers=1), CASES[name](workers=3))


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_what_is_on_disk_opens_and_verifies(name, alone):
    path = alone(name).workspace
    assert_same_run(alone(name), opened(name, path))
    for oracle in ("numba", "igraph"):
        report = pf.verify(path, oracle=oracle)
        assert report["rows"] == alone(name).n_active
        assert report.get("violation_of_x", 0.0) <= 1e-11
    assert not (path / "scratch").exists()


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CASES if name != "itml-projections"])  # which needs more on the way
def test_three_workers_and_the_least_memory_are_one_and_all(name, alone, tmp_path):
    path = tmp_path / "run.pf"
    with pytest.raises(pf.BudgetError, match=r"least that will do is [\d,]+ bytes") as caught:
        CASES[name](workspace=path, workers=3, memory="20kB")
    least = int(re.search(r"least that will do is ([\d,]+) bytes", str(caught.value)).group(1).replace(",", ""))
    assert_same_run(alone(name), CASES[name](workspace=path, workers=3, memory=least))


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(("svm", "transport", "itml"))])
def test_rows_that_wait_on_disk_are_rows_at_hand(name, alone, tmp_path):
    tight = Budget(rows=ROOM.get(name, 2000), vectors=0 if name.startswith("table") else None)
    result = CASES[name](workspace=tmp_path / "run.pf", workers=2, memory=tight)
    assert sum(record["read_bytes"] for record in result.history) > 0
    assert_same_run(alone(name), result)
    if name not in ON_DISK:
        with pytest.raises(pf.BudgetError, match="memory="):
            CASES[name](memory=tight)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_resumed_is_uninterrupted(name, alone, tmp_path):
    path, steps = tmp_path / "run.pf", 1
    result = CASES[name](workspace=path, max_iter=1)
    while not result.converged:
        assert result.status == "iteration_limit"
        pf.verify(path, oracle="numba")
        result = go_on(name, path, max_iter=1 + alone(name).n_iter // 8, workers=1 + steps % 2)
        steps += 1
    assert steps > 3
    assert_same_run(alone(name), result)


def run_and_die(name, path):
    """Start a case and be killed in the middle of its third iteration, or soon after."""

    def kill_soon(record):
        if record["iteration"] == 2:
            threading.Timer(0.003, os.kill, (os.getpid(), signal.SIGKILL)).start()

    with changed_settings() as settings:
        make_small(settings)
        settings.every_commit_at_once()
        CASES[name](workspace=path, workers=2, callback=kill_soon)
        time.sleep(60)


@pytest.mark.faults
@pytest.mark.parametrize("name", CASES)
def test_killed_is_uninterrupted(name, alone, tmp_path):
    path, context = tmp_path / "run.pf", multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.gallery"])
    process = context.Process(target=run_and_die, args=(name, path))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert Workspace(path).manifest["iteration"] >= 2
    pf.verify(path, oracle="numba")
    assert_same_run(alone(name), go_on(name, path))


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(("nearness", "table", "rows", "sets"))])
def test_stopped_before_its_answer_is_uninterrupted(name, alone, tmp_path, monkeypatch):
    """The last iteration was committed, what the problem makes of it was not."""
    with monkeypatch.context() as patch:
        patch.setattr("ooc_pf.engine.place._commit_answer", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
        with contextlib.suppress(RuntimeError):
            CASES[name](workspace=tmp_path / "run.pf", workers=1)
    assert Workspace(tmp_path / "run.pf").manifest["status"] in ("converged", "ratio_reached")
    assert_same_run(alone(name), go_on(name, tmp_path / "run.pf"))


def test_every_family_has_a_case(alone):
    held = [workspaces.family_of(Workspace(alone(name).workspace)) for name in CASES]
    for name, entry in workspaces.FAMILIES.items():
        assert any(family is workspaces._found(entry.family) for family in held), f"no case is of the family {name}"


@pytest.mark.long
def test_only_the_functions_of_the_caller_are_not_stored(tmp_path):
    for name in CASES:
        CASES[name](workspace=tmp_path / name, max_iter=1)
        if name in OWN:
            with pytest.raises(pf.WorkspaceError, match="Python objects"):
                pf.resume(tmp_path / name)
        else:
            assert pf.resume(tmp_path / name, max_iter=1).n_iter == 2
