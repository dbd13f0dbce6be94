"""Linear support vector machines: what cannot be is refused by name."""

import numpy as np
import pytest
from scipy import sparse

import ooc_pf as pf
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
