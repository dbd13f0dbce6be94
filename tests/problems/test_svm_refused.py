"""Linear support vector machines: what cannot be is refused by name."""

import json
import shutil

import numpy as np
import pytest
from scipy import sparse

import ooc_pf as pf
from ooc_pf.problems.svm import fit_newton
from ooc_pf.storage.arrays import digest_group, read_array, write_array
from ooc_pf.storage.workspace import Workspace, sealed
from ooc_pf.svm.inputs import read_table
from ooc_pf.svm.program import Program
from tests.gallery import labelled_rows


@pytest.fixture
def rows(rng):
    return labelled_rows(rng, 900, 7)


@pytest.mark.parametrize("method", ["newton", "stochastic", "project_and_forget"])
@pytest.mark.parametrize("value, name", [(np.nan, "NaN"), (np.inf, "infinity")])
@pytest.mark.parametrize("thin", [False, True])
def test_numbers_that_are_none_are_found(rows, method, value, name, thin):
    X, y = rows[0][:200].copy(), rows[1][:200]
    X[150, 3] = value
    with pytest.raises(pf.InputError, match=f"{name} at row 150, column 3"):
        pf.LinearSVM(method=method).fit(sparse.csr_matrix(X) if thin else X, y)
    with pytest.raises(pf.InputError, match=f"{name} at row 150, column 3"):
        pf.LinearSVM().fit(np.nan_to_num(X, posinf=0.0), y).predict(X)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"C": 0.0}, "C must be a positive number, found 0.0"),
        ({"C": "1"}, "C must be a positive number, found '1'"),
        ({"method": "sgd"}, "method must be one of newton, stochastic, project_and_forget, found 'sgd'"),
        ({"tol": 0.0}, "tol must be a positive number"),
        ({"max_iter": -1}, "max_iter must be a whole number"),
        ({"workers": 0}, "workers must be a positive whole number"),
        ({"random_state": -1}, "seed must be a whole number"),
        ({"class_weight": {2: 1.0}}, "class_weight has the class 2, which is not in y"),
        ({"class_weight": {0: -1.0}}, "numbers from 0 on"),
        ({"class_weight": "even"}, "found 'even'"),
        ({"method": "stochastic", "workspace": "x.pf"}, "keeps no state"),
        ({"memory": "lots"}, "is not a size"),
    ],
)
def test_parameters_that_cannot_be_are_named(rows, options, message):
    with pytest.raises(pf.InputError, match=message):
        pf.LinearSVM(**options).fit(*rows)


def test_rows_and_labels_that_cannot_be_are_named(rows):
    X, y = rows
    model = pf.LinearSVM()
    weight = np.ones(900)
    weight[7] = -1.0
    for arguments, message in (
        ((X, y[:-1]), "X has 900 rows and y 899 labels"),
        ((X, np.zeros(900)), "found one class"),
        ((X, y, weight), r"sample_weight\[7\] is -1.0"),
        ((X, y, weight[:5]), r"900 in all, found shape \(5,\)"),
        ((X, y, y == 0), "found one class"),
        ((X, y, 0.0 * y), "zero everywhere"),
        ((iter([X]), y), "can be read only once"),
        (([X[:9], X[9:, :3]], y), "block 1 of X has 3 columns, those before it 7"),
        (([X[:9], X[9]], y), "number 1 is"),
        ((X, None), "the target y is None"),
    ):
        with pytest.raises(pf.InputError, match=message):
            model.fit(*arguments)
    with pytest.raises(pf.InputError, match="X has 3 features, but LinearSVM is expecting 7"):
        model.fit(X, y).predict([X[:, :3]])


@pytest.fixture
def stopped(tmp_path):
    """(run, path): a fit that was stopped after two iterations, and what goes on with it."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + 0.7 * rng.normal(size=300) > 0).astype(np.int8)
    program = Program(read_table(X), y, np.empty(0), np.ones(2), (1,), 10.0, False)
    path = tmp_path / "run.pf"
    fit_newton(program, tol=1e-10, workspace=path, max_iter=2)
    pf.verify(path)
    return lambda: fit_newton(program, tol=1e-10, workspace=path), path


def put(path, name, change):
    """Change an array of the generation, and the fingerprints with it."""
    place = Workspace(path)
    group = place.generation
    values = change(read_array(group, name))
    shutil.rmtree(group / name)
    write_array(group, name, values)
    manifest = place.manifest
    manifest["digests"]["groups"][group.relative_to(path).as_posix()] = digest_group(group)
    (path / "manifest.json").write_text(json.dumps(sealed(manifest, (path / "history.jsonl").read_bytes())))


@pytest.mark.parametrize("wrong", [np.inf, np.nan])
def test_sums_that_are_no_numbers_are_refused(stopped, wrong):
    run, path = stopped
    put(path, "gram", lambda values: np.where(np.arange(len(values)) == 0, wrong, values))
    with pytest.raises(pf.WorkspaceError, match="gram"):
        run()


def test_sums_that_cannot_be_do_not_hang(stopped):
    """A step that is not the right one is taken back; the answer is the same."""
    run, path = stopped
    put(path, "gram", lambda values: -1.0 - np.abs(values))
    assert run().n_iter > 2


@pytest.mark.parametrize(
    "change", [lambda lower: lower[:0], lambda lower: lower + 1.0, lambda lower: np.append(lower, 1.0)]
)
def test_bounds_that_were_changed_are_named(stopped, change):
    _, path = stopped
    put(path, "lower", change)
    with pytest.raises(pf.WorkspaceError, match="bound"):
        pf.verify(path)


def test_a_cost_whose_bound_is_no_number_ends_a_run():
    """Nothing can be proven, and that is said; it does not go on for ever."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    with np.errstate(all="ignore"):
        model = pf.LinearSVM(C=1e300, max_iter=60).fit(X, X[:, 0] + X[:, 1] ** 2 > 0)
    assert model.status_ == "stalled" and model.lower_bound_ == 0.0


def test_rows_too_large_to_be_squared_are_refused():
    X = np.random.default_rng(0).normal(size=(50, 3))
    with np.errstate(all="ignore"), pytest.raises(pf.InputError, match="too large to be squared"):
        pf.LinearSVM().fit(1e200 * X, X[:, 0] > 0)
