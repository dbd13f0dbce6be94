"""The workspace: commits are atomic, damage is found, and nobody works in it twice."""

import json
import multiprocessing
import os
import shutil
import signal
import time

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.storage import arrays, memory
from ooc_pf.storage import workspace as ws
from ooc_pf.storage.arrays import ArrayWriter
from tests.conftest import assert_same_bits, resume_among_kills


def test_memory_sizes():
    assert memory.parse_memory("500MB") == 500_000_000
    assert memory.parse_memory("1.5GiB") == 3 * 2**29
    assert memory.parse_memory("2k") == 2000
    assert memory.parse_memory(12345) == 12345
    assert memory.parse_memory(1e9) == 10**9
    assert memory.parse_memory(None) is None
    for wrong in ("", "many", "1XB", "-3GB", 0, "1.2.3MB"):
        with pytest.raises(pf.InputError):
            memory.parse_memory(wrong)


@pytest.mark.parametrize("length", [0, 1, 1000, (4 << 20) // 8, (4 << 20) // 8 + 1, 1_200_000])
def test_arrays_come_back_as_written(tmp_path, length):
    values = np.random.default_rng(1).random(length)
    with arrays.ArrayWriter(tmp_path, "a", np.float64) as writer:
        for part in np.array_split(values, 7):
            writer.append(part)
    assert np.array_equal(arrays.read_array(tmp_path, "a"), values)
    assert np.array_equal(arrays.read_array(tmp_path, "a", length // 3, length // 2), values[length // 3 : length // 2])


@pytest.mark.parametrize("labels", [[5, -3, 2**60], ["a", "", "héllo", "a b"], []])
def test_labels_come_back_as_written(tmp_path, labels):
    arrays.write_labels(tmp_path, labels)
    assert arrays.read_labels(tmp_path).tolist() == labels


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


# -- restart --------------------------------------------------------------------------------------------------------


def test_resumed_equals_uninterrupted(small, tmp_path):
    whole = pf.metric_nearness(small, tol=1e-8)
    result = pf.metric_nearness(small, tol=1e-8, workspace=tmp_path / "run.pf", max_iter=1)
    while not result.converged:
        assert result.status == "iteration_limit"
        result = pf.resume(tmp_path / "run.pf", max_iter=3, workers=1 + result.n_iter % 2)
    assert_same_bits(whole, result)
    assert [record["iteration"] for record in result.history] == list(range(1, whole.n_iter + 1))


def test_resumed_with_igraph_equals_uninterrupted(small, tmp_path):
    options = {"tol": 1e-4, "oracle": "igraph", "workers": 2}
    whole = pf.metric_nearness(small, **options)
    pf.metric_nearness(small, workspace=tmp_path / "run.pf", max_iter=4, **options)
    assert_same_bits(whole, pf.resume(tmp_path / "run.pf", workers=1))


def test_resume_to_a_tighter_tolerance(small, tmp_path):
    loose = pf.metric_nearness(small, tol=1e-2, workspace=tmp_path / "run.pf")
    tight = pf.resume(tmp_path / "run.pf", tol=1e-9)
    assert tight.n_iter > loose.n_iter
    assert tight.gap <= 1e-9 and tight.violation <= 1e-9
    with pytest.raises(pf.InputError, match="tol must be"):
        pf.resume(tmp_path / "run.pf", tol=-1.0)


def test_weights_are_kept_for_resume(small, tmp_path, rng):
    weights = rng.uniform(0.5, 2.0, len(small[0]))
    whole = pf.metric_nearness(small, weights=weights)
    pf.metric_nearness(small, weights=weights, workspace=tmp_path / "run.pf", max_iter=2)
    assert_same_bits(whole, pf.resume(tmp_path / "run.pf"))


@pytest.mark.parametrize("kills", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_kill_at_random_moments_loses_nothing(small, tmp_path, kills):
    """Killed again and again without warning, the run still ends with the bits of one that was left alone."""
    path = tmp_path / "run.pf"
    pf.metric_nearness(small, tol=1e-8, workspace=path, max_iter=0)
    assert resume_among_kills(path, kills) == kills
    assert_same_bits(pf.metric_nearness(small, tol=1e-8), pf.resume(path))
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


def test_disk_use_stays_at_one_generation(solved):
    assert len(list((solved / "gen").iterdir())) == 1
    assert len(list((solved / "feasible").iterdir())) == 1
    assert {entry.name for entry in solved.iterdir()} == {
        "manifest.json", "history.jsonl", "lock", "edges.zarr", "graph.zarr", "gen", "feasible",
    }  # fmt: skip


def test_ctrl_c_commits_and_can_be_resumed(small, tmp_path):
    def interrupt(record):
        if record["iteration"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    result = pf.metric_nearness(small, tol=1e-8, workspace=tmp_path / "run.pf", callback=interrupt)
    assert (result.status, result.n_iter) == ("interrupted", 3)
    assert_same_bits(pf.metric_nearness(small, tol=1e-8), pf.resume(tmp_path / "run.pf"))


# -- what does not fit ----------------------------------------------------------------------------------------------


def test_changed_options_are_refused_with_the_difference(small, solved):
    with pytest.raises(pf.WorkspaceError, match=r"tol: 1e-08 then, 0.001 now.*resume.*restart"):
        pf.metric_nearness(solved, tol=1e-3)
    with pytest.raises(pf.WorkspaceError, match=r"weights: None then"):
        pf.metric_nearness(solved, tol=1e-8, weights=np.full(240, 2.0))
    again = pf.metric_nearness(solved, tol=1e-8)
    assert again.converged
    fresh = pf.metric_nearness(solved, tol=1e-3, restart=True)
    assert fresh.converged and fresh.n_iter < again.n_iter


def test_solve_continues_and_says_so(small, tmp_path, capsys):
    pf.metric_nearness(small, workspace=tmp_path / "run.pf", max_iter=2)
    result = pf.solve(tmp_path / "run.pf", progress=True)
    assert "continuing" in capsys.readouterr().err
    assert result.converged and result.history[0]["iteration"] == 1


def test_another_graph_under_the_same_name_is_refused(small, solved):
    u, v, d = small
    with pytest.raises(pf.WorkspaceError, match="another graph"):
        pf.metric_nearness((u, v, d + 1), tol=1e-8, workspace=solved)


def hold(path, ready, done):
    with ws.Workspace(path).locked():
        ready.set()
        done.wait(30)


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
    with pytest.raises(pf.WorkspaceError, match="not been solved"):
        pf.open(tmp_path / "signed.pf")


def test_a_stop_is_prompt_inside_a_long_pass(tmp_path, rng):
    nodes = 4000
    u, v = rng.integers(0, nodes, (2, 60_000))
    pairs = np.unique(np.sort(np.column_stack((u, v))[u != v], axis=1), axis=0)
    graph = (pairs[:, 0], pairs[:, 1], rng.random(len(pairs)))
    result = pf.metric_nearness(graph, max_time=1.0, workspace=tmp_path / "run.pf")
    assert result.status == "time_limit"
    assert not any("gap" in record for record in result.history)  # a complete pass alone takes many times longer


# -- found by using it ----------------------------------------------------------------------------------------------


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
    assert pf.verify(path)["status"] == "converged"


def test_readers_follow_a_writer(small, tmp_path):
    """What is read while a solve replaces generations is one state or the next, never an error."""
    import threading

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


def test_large_and_impossible_values(small):
    u, v, d = small
    assert pf.metric_nearness((u, v, d * 1e12), max_iter=500).converged
    with pytest.raises(pf.InputError, match="too large"):
        pf.metric_nearness((u, v, d * 1e200))
    with pytest.raises(pf.InputError, match="weight 0 is"):
        pf.metric_nearness(small, weights=np.full(240, 1e-310))


def test_a_looser_tolerance_that_is_met_already_counts(small, tmp_path):
    path = tmp_path / "run.pf"
    stopped = pf.metric_nearness(small, tol=1e-12, workspace=path, callback=lambda record: "gap" in record)
    assert stopped.status == "callback"
    assert pf.resume(path, tol=10.0).status == "converged"
    assert pf.open(path).status == "converged"


def test_a_lost_history_is_no_loss_of_the_run(small, tmp_path):
    path = tmp_path / "run.pf"
    pf.metric_nearness(small, tol=1e-8, workspace=path, max_iter=5)
    (path / "history.jsonl").unlink()
    result = pf.resume(path)
    assert result.converged
    assert result.history[0]["iteration"] == 6
    (path / "history.jsonl").write_text("rubbish\n" * 1000)
    with pytest.raises(pf.WorkspaceError, match=r"history.jsonl is damaged"):
        pf.open(path)


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


def test_numbers_may_be_of_numpy(small, tmp_path):
    result = pf.metric_nearness(
        small, tol=np.float32(1e-6), seed=np.int64(1), workers=np.int64(1), max_iter=np.int64(2),
        max_time=np.float64(60), workspace=tmp_path / "run.pf",
    )  # fmt: skip
    assert result.status == "iteration_limit"
    assert pf.resume(tmp_path / "run.pf").converged
