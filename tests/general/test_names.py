"""Rows that a function names by text: the names come back wherever the multipliers do."""

import csv
import pickle
import shutil

import numpy as np
import pyarrow.parquet
import pytest

import ooc_pf as pf
from ooc_pf.commands.cli import main
from ooc_pf.engine import names as naming
from ooc_pf.engine.names import Names
from ooc_pf.engine.store import ConstraintStore
from ooc_pf.oracles import read_block
from ooc_pf.storage.arrays import read_array, write_array
from ooc_pf.storage.vectors import Pool
from ooc_pf.storage.workspace import Workspace


@pytest.fixture
def problem(rng):
    """An objective, rows A x <= b, and their names: of no letter, of many bytes, alike but for one."""
    A, b = rng.normal(size=(30, 5)), np.full(30, 0.3)
    names = [f"limit {k}" for k in range(28)] + ["größte Länge 長さ", " "]
    return pf.objectives.quadratic(2.0 * rng.normal(size=5)), A, b, names


def named_rows(problem):
    _, A, b, names = problem
    return lambda x: [(np.arange(5), A[k], b[k], False, names[k]) for k in np.flatnonzero(A @ x > b)]


def expected(problem):
    """The multipliers by name, from a table of the same rows."""
    objective, A, b, names = problem
    plain = pf.project_and_forget(objective, (A, b), tol=1e-9)
    return {names[number]: dual for number, dual in plain.duals.items()}


def assert_alike(duals, others):
    assert duals.keys() == others.keys()
    assert all(np.isclose(dual, others[name], atol=1e-6) for name, dual in duals.items())


@pytest.mark.parametrize("forget", ["inactive", "never", "all"])
def test_multipliers_go_by_names(problem, forget, tmp_path):
    objective, A, b, names = problem
    for oracle in (named_rows(problem), lambda x: (A, b, False, names), [(A, b, False, np.array(names))]):
        result = pf.project_and_forget(objective, oracle, tol=1e-7, forget=forget)
        duals = {name: dual for name, dual in result.duals.items() if dual > 1e-5}
        assert all(np.isclose(dual, expected(problem)[name], atol=1e-4) for name, dual in duals.items())
        assert len(duals) == len(expected(problem))
        assert pickle.loads(pickle.dumps(result)).duals == result.duals


def test_names_are_in_the_workspace(problem, tmp_path):
    path, oracle = tmp_path / "run.pf", named_rows(problem)
    begun = pf.project_and_forget(problem[0], oracle, tol=1e-9, workspace=path, max_iter=1)
    assert set(begun.duals) <= set(problem[3]) and begun.duals == pf.open(path).duals
    result = pf.project_and_forget(problem[0], oracle, tol=1e-9, workspace=path)
    assert_alike(result.duals, expected(problem))
    assert pf.open(path).duals == result.duals
    assert pf.verify(path)["rows"] == result.n_active
    in_memory = pf.project_and_forget(problem[0], oracle, tol=1e-9)
    assert in_memory.duals == result.duals


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_multipliers_are_exported_by_name(problem, ending, tmp_path, capsys):
    path, target = tmp_path / "run.pf", tmp_path / f"duals.{ending}"
    result = pf.project_and_forget(problem[0], named_rows(problem), tol=1e-9, workspace=path)
    assert main(["export", str(path), str(target), "--duals"]) == 0
    assert f"wrote {len(result.duals)} rows" in capsys.readouterr().out
    if ending == "csv":
        with target.open(newline="", encoding="utf-8") as file:
            found = {row["row"]: float(row["multiplier"]) for row in csv.DictReader(file)}
    else:
        table = np.load(target) if ending == "npz" else pyarrow.parquet.read_table(target).to_pydict()
        found = dict(zip(map(str, table["row"]), table["multiplier"], strict=True))
    assert found == result.duals


def test_names_that_npz_would_change_or_blow_up_are_refused(problem, tmp_path, monkeypatch):
    *rest, names = problem
    oracle = named_rows((*rest, [f"{name}\0" for name in names]))
    pf.project_and_forget(problem[0], oracle, tol=1e-9, workspace=tmp_path / "run.pf")
    with pytest.raises(pf.InputError, match="ends with a zero sign"):
        pf.export(tmp_path / "run.pf", tmp_path / "duals.npz", duals=True)
    assert pf.export(tmp_path / "run.pf", tmp_path / "duals.parquet", duals=True)
    monkeypatch.setattr("ooc_pf.commands.handed.MOST_FIXED_WIDTH", 10)
    with pytest.raises(pf.InputError, match=r"would take [\d,]+ bytes in npz"):
        pf.export(tmp_path / "run.pf", tmp_path / "duals.npz", duals=True)
    assert not (tmp_path / "duals.npz").exists()


def test_export_says_what_there_is(problem, small, tmp_path):
    own, graph = tmp_path / "own.pf", tmp_path / "graph.pf"
    pf.project_and_forget(problem[0], problem[1:3], workspace=own)
    with pytest.raises(pf.WorkspaceError, match="duals=True"):
        pf.export(own, tmp_path / "a.csv")
    assert pf.export(own, tmp_path / "a.npz", duals=True) == len(pf.open(own).duals)
    assert np.load(tmp_path / "a.npz")["row"].tolist() == list(pf.open(own).duals)
    pf.metric_nearness(small, workspace=graph)
    with pytest.raises(pf.WorkspaceError, match="no multipliers by row"):
        pf.export(graph, tmp_path / "b.csv", duals=True)


def test_names_numbers_and_nothing_may_be_mixed(tmp_path):
    def oracle(x):
        # The name comes when the store has rows without one.
        late = [([2], [1.0], 1.0, False, "late")] if x[0] <= 1.0 else []
        return [([0], [1.0], 1.0, False, 7), ([1], [1.0], 1.0), *late]

    path = tmp_path / "run.pf"
    for options in ({}, {"workspace": path}):
        duals = pf.project_and_forget(pf.objectives.quadratic([2.0, 3.0, 4.0]), oracle, **options).duals
        assert (duals.pop(7), duals.pop("late"), list(duals.values())) == (1.0, 3.0, [2.0])
    assert {7, "late"} < set(pf.open(path).duals)


def test_errors_name_the_row():
    def oracle(x):
        return [([0], [np.nan], 1.0, False, "width")]

    with pytest.raises(pf.InputError, match="row 'width' has the coefficient nan"):
        pf.project_and_forget(pf.objectives.quadratic([2.0, 3.0]), oracle)


@pytest.mark.parametrize("together", [True, False])
def test_names_of_one_hash_are_told_apart(together, monkeypatch):
    monkeypatch.setattr(naming, "_hash", lambda name: naming.NAMED)
    rows = [([0], [1.0], 1.0, False, "a"), ([1], [1.0], 1.0, False, "b")]

    def oracle(x):
        return rows if together else [rows[0]] if x[0] > 1.0 else [rows[1]]

    with pytest.raises(pf.InputError, match=r"the keys .* of two rows have the same hash"):
        pf.project_and_forget(pf.objectives.quadratic([2.0, 3.0]), oracle)


# -- the store --------------------------------------------------------------------------------------------------------


def test_only_names_of_kept_rows_are_held_and_they_count(tmp_path):
    store = ConstraintStore(20_000, Pool(None, tmp_path))
    store.append(read_block([([k], [1.0], 0.0, False, f"{k}" * 200) for k in range(100)]))
    assert sum(block.name_text.nbytes for block in store.blocks()) == sum(200 * len(str(k)) for k in range(100))
    assert store._file is not None  # they are on disk, as the names alone are more than the budget
    for block in store.blocks():
        block.dual[3] = 1.0
    store.forget()
    assert [list(block.names) for block in store.blocks()] == [["3" * 200]]


def test_names_keep_to_their_rows():
    names = Names.of(["one", "", "drei", "四"])
    assert list(names.select(np.array([True, False, False, True]))) == ["one", "四"]
    assert list(names.span(1, 3)) == ["", "drei"]
    assert list(Names.join([names.span(2, 4), Names.none(2), names.span(0, 1)])) == ["drei", "四", "", "", "one"]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("name_text", lambda text: text[:-1]),
        ("name_text", lambda text: np.full_like(text, 0xFF)),
        ("name_text", lambda text: np.roll(text, 1)),
        ("name_start", lambda start: start[:-1]),
        ("name_start", lambda start: start[::-1]),
        ("name_start", lambda start: np.where(start > 0, 2**30, 0).astype(np.int32)),
        ("name_text", None),
    ],
)
def test_damaged_names_are_refused(problem, field, change, tmp_path):
    path = tmp_path / "run.pf"
    pf.project_and_forget(problem[0], named_rows(problem), workspace=path)
    group = Workspace(path).generation / "rows"
    values = read_array(group, field)
    shutil.rmtree(group / field)
    if change is not None:
        write_array(group, field, change(values))
    for use in (pf.verify, lambda path: pf.open(path).duals):
        with pytest.raises(pf.WorkspaceError, match="damaged"):
            use(path)
