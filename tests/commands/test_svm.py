"""Support vector machines from files, on the command line."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import zarr
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.commands.cli import main
from ooc_pf.problems.svm_files import fit_files
from ooc_pf.storage.arrays import digest_group, write_array
from ooc_pf.storage.workspace import Workspace, sealed
from ooc_pf.svm import settings as numbers
from ooc_pf.svm.files import Files
from tests.gallery import labelled_rows

NAMES = [f"f{k}" for k in range(7)]


@pytest.fixture
def files(rng, tmp_path, monkeypatch):
    """Rows and labels in files of every kind; and as arrays. Parts are small, so that there are many."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(numbers, "PART_ENTRIES", 500)
    monkeypatch.setattr(numbers, "TILE_ENTRIES", 120)
    monkeypatch.setattr(numbers, "STRIP", 3)
    X, y = labelled_rows(rng, 900, 7)
    names = np.array(["no", "yes"])[y]
    np.save("X.npy", X)
    np.save("y.npy", y)
    np.save("names.npy", names)
    np.save("both.npy", np.hstack([X, y[:, None]]))
    zarr.create_array("X.zarr", shape=X.shape, chunks=(70, 7), dtype="f8")[:] = X
    table = pa.table(dict(zip(NAMES, X.T, strict=True)) | {"spam": names})
    pa.parquet.write_table(table, "rows.parquet", row_group_size=400)
    return X, y


def run(command, capsys):
    """The exit code, and the JSON that a command printed."""
    code = main([*command.split(), "--json", *([] if command.startswith(("verify", "export")) else ["--quiet"])])
    out = capsys.readouterr().out
    return code, json.loads(out) if out else None


@pytest.mark.parametrize(
    "given",
    [
        "X.npy y.npy",
        "X.zarr names.npy",
        "rows.parquet --label spam",
        "X.npy rows.parquet --label spam",
        "both.npy --label 8",
        "both.npy y.npy --columns 1,2,3,4,5,6,7",
    ],
)
def test_it_is_the_fit_of_the_same_arrays(files, given, capsys):
    X, y = files
    code, facts = run(f"svm {given} -o svm.pf --C 5 --intercept --tol 1e-9", capsys)
    model = pf.LinearSVM(C=5.0, fit_intercept=True, tol=1e-9).fit(X, y)
    assert code == 0 and facts["status"] == "converged" and facts["gap"] <= 1e-9
    assert np.allclose(pf.open("svm.pf").x[:-1], model.coef_[0], rtol=1e-6)
    report = run("verify svm.pf", capsys)[1]
    assert report["verified"] and report["rows_read"] == 900
    assert report["objective"] == pytest.approx(model.objective_, rel=1e-9)
    assert report["objective"] <= report["lower_bound_of_x"] * (1.0 + 1e-8)


def test_files_and_workers_do_not_change_the_bits(files, capsys):
    for at, names in enumerate(["X.npy y.npy", "rows.parquet --label spam", "X.npy names.npy"]):
        assert run(f"svm {names} -o {at}.pf --workers {1 + at}", capsys)[0] == 0
    assert np.array_equal(pf.open("0.pf").x, pf.open("1.pf").x)
    assert np.array_equal(pf.open("0.pf").x, pf.open("2.pf").x)


@pytest.mark.parametrize("given", ["X.npy y.npy", "rows.parquet --label spam"])
def test_an_interrupted_fit_goes_on_to_the_same_bits(files, given, capsys):
    assert run(f"svm {given} -o whole.pf --C 50", capsys)[0] == 0
    command = f"svm {given} -o parts.pf --C 50"
    assert run(f"{command} --max-iter 2", capsys)[0] == 3
    assert "svm: iteration_limit" in (main(["status", "parts.pf"]), capsys.readouterr().out)[1]
    assert run("resume parts.pf --max-iter 2", capsys)[0] == 3
    assert run("verify parts.pf", capsys)[1]["rows_read"] == 900
    assert run(f"{command} --max-iter 1", capsys)[0] == 3  # the same command goes on, too
    assert run("resume parts.pf", capsys)[0] == 0
    whole, parts = pf.open("whole.pf"), pf.open("parts.pf")
    assert np.array_equal(whole.x, parts.x) and whole.n_iter == parts.n_iter
    assert "not converged" not in (main(["export", "parts.pf", "w.csv"]), capsys.readouterr().err)[1]


def test_weights_are_exported_with_their_names(files, capsys):
    X, y = files
    run("svm rows.parquet --label spam -o svm.pf --intercept --model weights.csv --columns f1,f4", capsys)
    model = pf.LinearSVM(fit_intercept=True).fit(X[:, [1, 4]], y)
    table = pa.csv.read_csv("weights.csv").to_pydict()
    assert table["class"] == ["yes"] * 3 and table["feature"] == ["f1", "f4", "(intercept)"]
    assert np.allclose(table["weight"], [*model.coef_[0], *model.intercept_], rtol=1e-6)
    assert run("export svm.pf weights.parquet", capsys)[1]["weights"] == 3
    assert pa.parquet.read_table("weights.parquet").to_pydict() == table
    assert run("export svm.pf weights.npz", capsys)[0] == 0
    with np.load("weights.npz") as found:
        assert found["coef"].shape == (1, 2) and found["intercept"][0] == table["weight"][2]
        assert found["classes"].tolist() == ["no", "yes"] and found["features"].tolist() == ["f1", "f4"]
    assert main(["report", "svm.pf"]) == 0


def test_weights_of_a_fit_in_python_are_exported_too(files, capsys):
    X, _ = files
    pf.LinearSVM(workspace="own.pf").fit(X, np.arange(900) % 3)
    assert run("export own.pf weights.csv", capsys)[1]["weights"] == 21
    table = pa.csv.read_csv("weights.csv").to_pydict()
    assert table["class"][::7] == [0, 1, 2] and table["feature"][:7] == [1, 2, 3, 4, 5, 6, 7]
    assert main(["resume", "own.pf"]) == 1
    assert "LinearSVM.fit" in capsys.readouterr().err


def test_an_unfinished_fit_says_so_in_its_file(files, capsys):
    run("svm X.npy y.npy -o svm.pf --max-iter 3", capsys)
    assert main(["export", "svm.pf", "weights.npz"]) == 0
    assert "has not converged" in capsys.readouterr().err
    with np.load("weights.npz") as found:
        assert "has not converged" in str(found["note"])
    assert main(["export", "svm.pf", "weights.csv", "--require-converged"]) == 1


@pytest.mark.parametrize("given", ["X.npy y.npy", "rows.parquet --label spam"])
def test_random_projections_write_a_model(files, given, capsys):
    X, y = files
    assert run(f"svm {given} --method stochastic --model w.npz --intercept", capsys)[1]["status"] == "finished"
    with np.load("w.npz") as found:
        score = X @ found["coef"][0] + found["intercept"][0]
    model = pf.LinearSVM(fit_intercept=True).fit(X, y)
    assert np.mean((score > 0) == y) >= model.score(X, y) - 0.02


@hypothesis_settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.integers(0, 6), min_size=1, max_size=7, unique=True), st.booleans())
def test_columns_may_be_named_in_any_order(files, columns, named):
    X, y = files
    name, asked = ("rows.parquet", [NAMES[k] for k in columns]) if named else ("X.npy", [str(k + 1) for k in columns])
    source, places = Files(name, "y.npy", tuple(asked)).opened()
    assert places == columns
    table = source.table(places)
    blocks = [load() for pieces in table.tasks([[span] for span in table.parts]) for _, load in pieces]
    assert np.array_equal(np.vstack(blocks), X[:, columns])
    assert np.array_equal(Files(name, "y.npy").classes(900)[1], y)


@pytest.mark.parametrize("kind", [np.int8, np.float32, np.bool_, "<U3"])
def test_labels_may_be_of_any_kind(files, kind):
    labels = files[1].astype(kind)
    np.save("labels.npy", labels)
    classes, code = Files("X.npy", "labels.npy").classes(900)
    assert len(classes) == 2 and np.array_equal(code, files[1])


def test_float32_stays_float32(files, capsys):
    X, _ = files
    columns = {name: pa.array(column, pa.float32()) for name, column in zip(NAMES, X.T, strict=True)}
    pa.parquet.write_table(pa.table(columns), "thin.parquet")
    assert run("svm thin.parquet y.npy -o svm.pf", capsys)[0] == 0
    assert np.array_equal(np.load("svm.pf/rows.npy"), X.astype(np.float32))


# -- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command, message",
    [
        ("X.txt y.npy -o o.pf", "cannot read numbers from X.txt"),
        ("no.npy y.npy -o o.pf", "no.npy is not there"),
        ("X.npy -o o.pf", "where are the labels of X.npy?"),
        ("X.npy y.npy", "name a workspace with -o"),
        ("X.npy short.npy -o o.pf", "X.npy has 900 rows and short.npy 10 labels"),
        ("y.npy y.npy -o o.pf", "y.npy must have two dimensions"),
        ("X.npy X.npy -o o.pf", "X.npy has 7 columns; name that of the labels"),
        ("X.npy ones.npy -o o.pf", "ones.npy has one class only, 1"),
        ("X.npy parts.npy -o o.pf", "parts.npy has the label 0.5 at row 3"),
        ("X.npy many.npy -o o.pf", "many.npy has more than 20 different labels"),
        ("nan.npy y.npy -o o.pf", "NaN at row 5, column 2"),
        ("X.npy y.npy -o o.pf --C 0", "C must be a positive number, found 0.0"),
        ("X.npy y.npy -o o.pf --tol 0", "tol must be a positive number"),
        ("X.npy y.npy -o o.pf --columns 1,9", "columns 1, 9 asked for, it has 1 to 7"),
        ("X.npy y.npy -o o.pf --memory 1MB", "memory='1MB' is too small here"),
        ("rows.parquet -o o.pf --label sham", "column 'sham' is missing in it (did you mean 'spam'?)"),
        ("rows.parquet -o o.pf --label spam --columns f1,spam", "'spam' is both the label and a feature"),
        ("rows.parquet y.npy -o o.pf", "column 'spam' has type string, expected numbers"),
        ("holes.parquet y.npy -o o.pf", "column 'a' has no value at row 7"),
        ("bad.parquet y.npy -o o.pf", "bad.parquet cannot be read"),
        ("X.npy y.npy -o o.pf --method stochastic", "keeps no state: leave out -o"),
        ("X.npy y.npy --method stochastic", "name a file for the weights with --model"),
        ("X.npy y.npy -o o.pf --model w.txt", "name a file ending in .csv, .parquet or .npz"),
        ("rows.parquet --label spam --method stochastic --model w.csv --memory 20MB", "is too small here"),
    ],
)
def test_what_cannot_be_is_refused_by_name(files, monkeypatch, command, message, capsys):
    X, y = files
    monkeypatch.setattr("ooc_pf.svm.files.MOST_CLASSES", 20)
    np.save("short.npy", y[:10])
    np.save("ones.npy", np.ones(900, int))
    np.save("parts.npy", np.where(np.arange(900) == 3, 0.5, 1.0))
    np.save("many.npy", np.arange(900))
    np.save("nan.npy", np.where(np.arange(6300).reshape(900, 7) == 37, np.nan, X))
    pa.parquet.write_table(pa.table({"a": pa.array([None if k == 7 else 1.0 for k in range(900)])}), "holes.parquet")
    Path("bad.parquet").write_text("no table")
    assert main(["svm", *command.split(), "--quiet"]) == 1
    assert message in capsys.readouterr().err


def test_a_workspace_keeps_to_its_files(files, capsys):
    X, _ = files
    run("svm X.npy y.npy -o svm.pf --max-iter 1", capsys)
    np.save("other.npy", X)
    for command, message in [
        ("svm other.npy y.npy -o svm.pf", "and not what is named now"),
        ("svm X.npy y.npy -o svm.pf --columns 1,2", "and not what is named now"),
        ("svm X.npy y.npy -o svm.pf --C 2", "C: 1.0 then, 2.0 now"),
        ("svm X.npy y.npy -o svm.pf --intercept --restart", "holds another table of rows"),
    ]:
        assert main([*command.split(), "--quiet"]) == 1
        assert message in capsys.readouterr().err
    assert run("svm X.npy y.npy -o svm.pf --C 2 --restart", capsys)[0] == 0
    np.save("X.npy", -X)
    assert main(["resume", "svm.pf", "--tol", "1e-10"]) == 1
    assert "holds another table of rows" in capsys.readouterr().err
    shutil.move("X.npy", "gone.npy")
    assert main(["resume", "svm.pf"]) == 1
    assert "X.npy, which is not there" in capsys.readouterr().err
    report = run("verify svm.pf", capsys)[1]
    assert report["rows_read"] == 0 and "is not there" in report["why"]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([1e300, 2e300], "label 2e.300 at row"),
        ([2.0**53, 2.0**54], "too large"),
        (np.array([1, 2**64 - 1], np.uint64), "label 18446744073709551615 at row"),
        (["a", "\ud800"], "half of a character"),
    ],
    ids=str,
)
def test_no_label_becomes_another_one(files, labels, words):
    np.save("other.npy", np.array(labels)[files[1]])
    with pytest.raises(pf.InputError, match=words):
        fit_files(Files("X.npy", "other.npy"), "svm.pf")
    assert not Path("svm.pf").exists()


def test_a_workspace_of_other_things_is_refused(files, capsys):
    pf.LinearSVM(workspace="own.pf").fit(*files)
    assert main(["svm", "X.npy", "y.npy", "-o", "own.pf", "--quiet"]) == 1
    assert "was not made from files" in capsys.readouterr().err


def test_verify_finds_a_row_that_was_changed(files, capsys):
    run("svm rows.parquet --label spam -o svm.pf", capsys)
    rows = np.lib.format.open_memmap("svm.pf/rows.npy", "r+")
    rows[500] *= -3.0
    rows.flush()
    assert main(["verify", "svm.pf"]) == 1
    assert "the manifest claims objective" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change, message",
    [
        ({"columns": []}, "graph.source.columns"),
        ({"columns": [-1] * 7}, "graph.source.columns"),
        ({"features": [1] * 7}, "graph.source.columns"),
        ({"unpacked": "yes"}, "graph.source.unpacked"),
        ({"file": 3}, "graph.source.file"),
    ],
)
def test_a_manifest_that_nobody_wrote_is_refused(files, change, message, capsys):
    run("svm X.npy y.npy -o svm.pf --max-iter 1", capsys)
    place = Workspace("svm.pf")
    place.manifest["graph"]["source"] |= change
    history = (place.path / "history.jsonl").read_bytes()
    (place.path / "manifest.json").write_text(json.dumps(sealed(place.manifest, history)))
    assert main(["resume", "svm.pf"]) == 1
    assert message in capsys.readouterr().err


def test_labels_that_nobody_wrote_are_refused(files, capsys):
    run("svm X.npy y.npy -o svm.pf --max-iter 1", capsys)
    shutil.rmtree("svm.pf/edges.zarr/code")
    place = Workspace("svm.pf")
    write_array(place.edges, "code", np.full(900, 7, np.uint8))
    assert digest_group(place.edges) != place.manifest["digests"]["groups"]["edges.zarr"]
    assert main(["resume", "svm.pf"]) == 1
    assert "code is not that of the labels" in capsys.readouterr().err
