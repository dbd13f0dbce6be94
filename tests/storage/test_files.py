"""Files are created exclusively, never through a link, and their names are synced."""

import os
import shutil

import numpy as np
import pytest
import zarr

import ooc_pf as pf
from ooc_pf.storage import arrays, files, vectors
from ooc_pf.storage import workspace as ws
from tests.properties import assert_same_bits


@pytest.fixture
def stopped(small, tmp_path):
    """A run after three iterations."""
    pf.metric_nearness(small, tol=1e-8, workspace=tmp_path / "run.pf", max_iter=3)
    return tmp_path / "run.pf"


@pytest.fixture
def victim(tmp_path):
    """A file of somebody else."""
    (tmp_path / "victim").write_text("precious")
    yield tmp_path / "victim"
    assert (tmp_path / "victim").read_text() == "precious"


# -- links ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_temporary_file_is_not_written_through_a_link(stopped, small, victim, link):
    link(victim, stopped / "manifest.json.new")
    assert_same_bits(pf.metric_nearness(small, tol=1e-8), pf.resume(stopped))


def test_a_directory_in_the_place_of_a_temporary_file_is_named(stopped):
    (stopped / "manifest.json.new").mkdir()
    with pytest.raises(pf.WorkspaceError, match=r"manifest.json.new is a directory"):
        pf.resume(stopped)


def test_a_copy_made_of_hard_links_stays_as_it_was(stopped, small, tmp_path):
    copy = tmp_path / "copy.pf"
    shutil.copytree(stopped, copy, copy_function=os.link)
    before = {file: file.read_bytes() for file in copy.rglob("*") if file.is_file()}
    assert_same_bits(pf.metric_nearness(small, tol=1e-8), pf.resume(stopped))
    pf.metric_nearness(stopped, tol=1e-3, restart=True)
    assert {file: file.read_bytes() for file in copy.rglob("*") if file.is_file()} == before
    assert pf.verify(copy)["status"] == "iteration_limit"


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("end", ["csv", "parquet", "npz"])
def test_an_export_is_not_written_through_a_link(solved, victim, tmp_path, link, end):
    target = tmp_path / f"answer.{end}"
    link(victim, tmp_path / f"answer.{end}.partial")
    link(victim, target)
    assert pf.export(solved, target) == 240
    assert not target.is_symlink() and target.stat().st_size > 1000
    assert not (tmp_path / f"answer.{end}.partial").exists()


@pytest.mark.parametrize("name", ["lock", "history.jsonl", "manifest.json"])
def test_files_of_a_workspace_are_not_links(stopped, victim, name):
    (stopped / name).unlink()
    (stopped / name).symlink_to(victim)
    with pytest.raises(pf.WorkspaceError, match="symbolic link"):
        pf.resume(stopped)


def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(stopped):
    for name in ("lock", "history.jsonl", "manifest.json"):
        content = (stopped / name).read_bytes()
        (stopped / name).unlink()
        os.mkfifo(stopped / name)
        with pytest.raises(pf.WorkspaceError, match="is not a file"):
            pf.resume(stopped)
        (stopped / name).unlink()
        (stopped / name).write_bytes(content)


NESTED = [
    "edges.zarr/u", "edges.zarr/u/c", "edges.zarr/u/c/0", "edges.zarr/value/zarr.json", "graph.zarr/arc_start",
    "gen/*.zarr", "gen/*.zarr/y", "gen/*.zarr/rows", "gen/*.zarr/rows/dual/c/0", "feasible/*.zarr", "feasible/*.zarr/x",
]  # fmt: skip


@pytest.mark.parametrize("where", NESTED)
def test_links_inside_a_workspace_are_refused(stopped, tmp_path, where):
    (entry,) = stopped.glob(where)
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    for use in (pf.resume, pf.verify):
        with pytest.raises(pf.WorkspaceError, match="symbolic link"):
            use(stopped)
    assert (tmp_path / "elsewhere").exists()


def test_a_link_among_the_generations_is_removed_and_not_followed(stopped, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    for number in ("000005", "000099"):
        (stopped / "gen" / f"{number}.zarr").symlink_to(tmp_path / "elsewhere")
    assert pf.resume(stopped).converged
    assert (tmp_path / "elsewhere" / "file").exists()
    assert len(list((stopped / "gen").iterdir())) == 1


@pytest.mark.parametrize("name", ["run.pf", "run.pf.partial"])
@pytest.mark.parametrize("target", ["elsewhere", "nowhere"])
def test_a_workspace_is_not_built_through_a_link(tmp_path, small, name, target):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    (tmp_path / name).symlink_to(tmp_path / target)
    with pytest.raises(pf.WorkspaceError, match=r"symbolic link|already exists|no such workspace|not a workspace"):
        pf.metric_nearness(small, workspace=tmp_path / "run.pf", max_iter=0)
    assert [entry.name for entry in (tmp_path / "elsewhere").iterdir()] == ["file"]
    assert not (tmp_path / "nowhere").exists()


def test_a_workspace_may_itself_be_reached_through_a_link(stopped, small, tmp_path):
    (tmp_path / "named.pf").symlink_to(stopped)
    assert_same_bits(pf.metric_nearness(small, tol=1e-8), pf.resume(tmp_path / "named.pf"))


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_pages_are_not_written_through_a_link(tmp_path, victim, link):
    link(victim, tmp_path / "000001.pages")
    vector = vectors.Vector(100_000, pool=vectors.Pool(1000, tmp_path))
    vector.write(0, np.ones(100_000))
    assert vector.read(99_999, 100_000) == 1.0


# -- files ------------------------------------------------------------------------------------------------------------


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path):
    path = tmp_path / "answer.csv"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), files.replacing(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    with files.replacing(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["answer.csv"]


def test_a_link_is_replaced_and_not_followed(tmp_path, victim):
    (tmp_path / "answer.csv").symlink_to(victim)
    (tmp_path / "answer.csv.new").symlink_to(victim)
    files.replace_file(tmp_path / "answer.csv", "new")
    assert not (tmp_path / "answer.csv").is_symlink()


def test_removing_does_not_follow_links(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    files.remove(tmp_path / "link")
    files.remove(tmp_path / "link")
    assert (tmp_path / "elsewhere" / "file").exists()
    files.remove(tmp_path / "elsewhere")
    assert os.listdir(tmp_path) == []


def test_the_parents_of_a_new_directory_are_synced(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(files, "flush_directory", synced.append)
    files.make_directory(tmp_path / "a" / "b" / "c")
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]


# -- groups that any reader opens -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", arrays.KINDS)
@pytest.mark.parametrize("length", [0, 1, 5, 2 * arrays.CHUNK_BYTES + 3])
def test_arrays_have_the_bytes_that_the_library_writes(tmp_path, kind, length):
    values = np.random.default_rng(0).integers(0, 2, length).astype(kind)
    arrays.write_array(tmp_path, "ours", values)
    chunk = max(1, min(length, arrays.CHUNK_BYTES // values.dtype.itemsize))
    theirs = zarr.create_array(
        tmp_path / "theirs", shape=length, chunks=chunk, dtype=kind, fill_value=0, filters=None,
        serializer=zarr.codecs.BytesCodec(), compressors=[zarr.codecs.Crc32cCodec()],
        config={"write_empty_chunks": True},
    )  # fmt: skip
    theirs[:] = values
    found = [{file.name: file.read_bytes() for file in (tmp_path / name).rglob("*") if file.is_file()}
             for name in ("ours", "theirs")]  # fmt: skip
    ours, library = (found_in.pop("zarr.json") for found_in in found)
    assert found[0] == found[1]
    assert arrays.parse_json(ours, "") == arrays.parse_json(library, "")
    assert np.array_equal(zarr.open_array(tmp_path / "ours", mode="r")[:], values)


def test_every_group_of_a_workspace_opens_with_the_library(solved):
    signed = solved.parent / "signed.pf"
    edges = np.array([0, 1, 0, 2]), np.array([1, 2, 2, 3]), np.array([1.0, 1.0, -1.0, 1.0])
    pf.correlation_clustering(edges, workspace=signed)
    table = solved.parent / "table.pf"
    pf.metric_nearness(np.ones((4, 4)) - np.eye(4), workspace=table)
    for path in (solved, signed, table):
        groups = list(path.rglob("*.zarr"))
        assert {group.parent.name for group in groups} >= {path.name, "gen", "feasible"}
        for group in groups:
            opened = zarr.open_group(group, mode="r")
            assert set(opened.array_keys()) == {entry.parent.name for entry in group.glob("*/c")}
    assert set(zarr.open_group(solved / "edges.zarr", mode="r").array_keys()) == {"u", "v", "value", "labels"}
    generation = zarr.open_group(next((solved / "gen").iterdir()), mode="r")
    assert np.array_equal(generation["rows/dual"][:], pf.open(solved).duals.values)


def test_a_workspace_without_group_metadata_goes_on(stopped, small):
    """As older releases wrote them."""
    for group in [*stopped.rglob("*.zarr"), *stopped.glob("gen/*/rows")]:
        (group / "zarr.json").unlink()
    assert_same_bits(pf.metric_nearness(small, tol=1e-8), pf.resume(stopped))


# -- a workspace that is moved away -----------------------------------------------------------------------------------


def at_iteration(number, act):
    return lambda record: act() if record["iteration"] == number else None


@pytest.mark.parametrize("new", [False, True], ids=["nothing there", "another there"])
def test_a_workspace_moved_during_a_solve_is_noticed(small, tmp_path, new):
    path, moved = tmp_path / "run.pf", tmp_path / "moved.pf"
    pf.metric_nearness(small, tol=1e-8, workspace=path, max_iter=1)

    def move():
        path.rename(moved)
        if new:
            pf.metric_nearness(small, tol=1e-8, workspace=path, max_iter=2)

    with pytest.raises(pf.WorkspaceError, match="moved or removed"):
        pf.resume(path, callback=at_iteration(4, move))
    assert path.exists() == new
    if new:
        assert pf.verify(path)["status"] == "iteration_limit" and pf.open(path).n_iter == 2
    assert pf.open(moved).n_iter == 4
    assert_same_bits(pf.metric_nearness(small, tol=1e-8), pf.resume(moved))


def test_a_workspace_removed_during_a_solve_is_not_half_recreated(small, tmp_path):
    path = tmp_path / "run.pf"
    with pytest.raises(pf.WorkspaceError, match="moved or removed"):
        pf.metric_nearness(small, tol=1e-8, workspace=path, callback=at_iteration(3, lambda: shutil.rmtree(path)))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("call", range(0, 24, 3))
def test_a_workspace_moved_during_a_commit_is_not_half_recreated(small, tmp_path, monkeypatch, call):
    path, moved, real, calls = (
        tmp_path / "run.pf",
        tmp_path / "moved.pf",
        arrays.ArrayWriter._create,
        iter(range(10**6)),
    )
    pf.metric_nearness(small, tol=1e-8, workspace=path, max_iter=1)

    def create(writer):
        if next(calls) == call:
            path.rename(moved)
        real(writer)

    monkeypatch.setattr(arrays.ArrayWriter, "_create", create)
    with pytest.raises(pf.WorkspaceError, match="moved or removed"):
        pf.resume(path)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["moved.pf"]
    assert_same_bits(pf.metric_nearness(small, tol=1e-8), pf.resume(moved))


def test_scratch_files_do_not_recreate_a_workspace(tmp_path):
    pool = vectors.Pool(1000, tmp_path / "gone.pf" / "scratch")
    with pytest.raises(pf.WorkspaceError, match="moved or removed"):
        pool.open_file()
    assert os.listdir(tmp_path) == []


def test_a_first_commit_syncs_the_names_it_adds(small, tmp_path, monkeypatch):
    """The directories of generations and of the workspace, before the manifest names what is in them."""
    path, events = tmp_path / "run.pf", []
    for name in ("flush_directory", "replace_file"):
        for module in (files, ws):
            real = getattr(files, name)

            def noted(place, *more, real=real):
                events.append(os.path.relpath(place, tmp_path))
                real(place, *more)

            monkeypatch.setattr(module, name, noted)
    pf.metric_nearness(small, workspace=path, max_iter=1)
    built = events.index(".")
    first, *_, last = (at for at, event in enumerate(events) if event == "run.pf/manifest.json")
    assert built < first < events.index("run.pf/gen") < last
    assert "run.pf/feasible" in events and "run.pf" in events[events.index("run.pf/gen") - 3 :]
