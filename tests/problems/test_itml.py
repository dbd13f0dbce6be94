"""Metric learning: optimal, certified, the same for any workers, and clear about what it cannot use."""

import importlib
import shutil
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import ooc_pf as pf
from ooc_pf.itml import settings as numbers
from ooc_pf.itml.newton import Bound, Curvature, Place, Solved, first_place, step
from ooc_pf.itml.pairs import Crew, ListedPairs, count_pairs
from ooc_pf.kernels.itml import Terms, project_pairs
from tests import naive

METHODS = ("newton", "project_and_forget")


def labelled(rng, n=40, d=4, classes=3):
    """Points of a few classes that differ in the first feature, on very different scales."""
    y = rng.integers(0, classes, n)
    x = rng.normal(size=(n, d))
    x[:, 0] += 2.0 * y
    return x * 10.0 ** np.arange(d), y


def every_pair(x, y):
    a, b = np.triu_indices(len(x), 1)
    return np.stack([x[a], x[b]], axis=1), np.where(y[a] == y[b], 1, -1)


def naive_terms(model, d, sign):
    upper, lower = model.bounds_
    half = 0.5 * model.gamma * d
    return upper, lower, half / max(np.sum(sign > 0), 1), half / max(np.sum(sign < 0), 1)


@pytest.mark.long
@parametrize_with_checks([pf.ITML_Supervised(), pf.ITML()])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


# -- the optimum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("gamma", [0.5, 10.0])
@pytest.mark.long
def test_it_is_where_cyclic_projections_end(rng, method, gamma):
    x, y = labelled(rng, 14, 3)
    model = pf.ITML_Supervised(gamma, method=method, tol=1e-13, max_iter=3000).fit(x, y)
    pairs, sign = every_pair(x, y)
    differences = pairs[:, 0] - pairs[:, 1]
    prior = np.diag(1.0 / x.var(axis=0))
    terms = naive_terms(model, 3, sign)
    matrix, _ = naive.itml.cyclic_projections(prior, differences, sign, *terms, sweeps=1500)
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), matrix, rtol=1e-6, atol=1e-6 * abs(matrix).max())
    assert model.objective_ == pytest.approx(naive.itml.objective(matrix, prior, differences, sign, *terms), rel=1e-6)


@given(
    st.integers(0, 2**32 - 1), st.integers(2, 25), st.integers(1, 5), st.sampled_from([0.01, 1.0, 10.0, 300.0]),
    st.sampled_from(["identity", "array"]), st.booleans(),
)  # fmt: skip
@hypothesis_settings(max_examples=60, deadline=None)
def test_the_certificate_holds(seed, n, d, gamma, prior, early):
    """The objective is that of the matrix, no cyclic projection gets below the bound, and the gap is what is asked."""
    rng = np.random.default_rng(seed)
    differences = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3)
    sign = rng.choice([-1, 1], n)
    root = rng.normal(size=(d, d)) + 2.0 * np.eye(d)
    given_prior = root @ root.T + 0.1 * np.eye(d) if prior == "array" else "identity"
    pairs = np.stack([differences, np.zeros_like(differences)], axis=1)
    model = pf.ITML(gamma, prior=given_prior, standardize=False, max_iter=2 if early else 500).fit(pairs, sign)
    base = np.eye(d) if prior == "identity" else given_prior
    terms, matrix = naive_terms(model, d, sign), model.get_mahalanobis_matrix()
    value = naive.itml.objective(matrix, base, differences, sign, *terms)
    assert model.objective_ == pytest.approx(value, rel=1e-7, abs=1e-9)
    assert np.linalg.eigvalsh(matrix)[0] > 0.0
    other, _ = naive.itml.cyclic_projections(base, differences, sign, *terms, sweeps=30)
    assert model.lower_bound_ <= naive.itml.objective(other, base, differences, sign, *terms) * (1 + 1e-9) + 1e-9
    assert early or (model.status_ == "converged" and model.gap_ <= 1e-6)


def test_the_kernel_projects_as_the_textbook_does(rng):
    differences, sign = rng.normal(size=(30, 4)), rng.choice(np.array([-1, 1], np.int8), 30)
    differences[7] = 0.0  # p = 0: passed over
    terms, matrix, dual = Terms(0.7, 3.0, 0.4, 2.5), np.eye(4), np.zeros(30)
    for _ in range(3):
        project_pairs(matrix, differences, sign, dual, terms, np.zeros(1, np.uint8))
    expected, duals = naive.itml.cyclic_projections(np.eye(4), differences, sign, *terms, sweeps=3)
    np.testing.assert_allclose(matrix, expected, rtol=1e-10)
    np.testing.assert_allclose(dual, duals, rtol=1e-10)


@pytest.mark.parametrize("gamma", [300.0, 10_000.0])
def test_large_weights_are_certified_too(rng, gamma):
    x, y = labelled(rng, 80, 8)
    assert pf.ITML_Supervised(gamma).fit(x, y).status_ == "converged"


def test_methods_and_forms_of_input_agree(rng):
    x, y = labelled(rng)
    pairs, sign = every_pair(x, y)
    numbers_of_points = np.stack(np.triu_indices(len(x), 1), axis=1)
    # Ends of all pairs have other moments and percentiles than the points: say what they are.
    given_prior = np.diag(1.0 / x.var(axis=0))
    bounds = pf.ITML_Supervised().fit(x, y).bounds_
    options = {"prior": given_prior, "tol": 1e-10}
    fits = [
        pf.ITML_Supervised(**options).fit(x, y, bounds=bounds),
        pf.ITML(**options).fit(pairs, sign, bounds=bounds),
        pf.ITML(**options, preprocessor=x).fit(numbers_of_points, sign, bounds=bounds),
        pf.ITML(**options, preprocessor=lambda which: x[which]).fit(numbers_of_points, sign, bounds=bounds),
        pf.ITML(**options, method="project_and_forget", max_iter=2000).fit(pairs, sign, bounds=bounds),
    ]
    for other in fits[1:]:
        expected = fits[0].get_mahalanobis_matrix()
        np.testing.assert_allclose(other.get_mahalanobis_matrix(), expected, rtol=1e-4, atol=1e-4 * abs(expected).max())
        assert other.objective_ == pytest.approx(fits[0].objective_, rel=1e-9)


@pytest.mark.parametrize("listed", [False, True])
def test_pairs_drawn_at_random_lead_to_the_same_metric(rng, tmp_path, listed):
    """As in the paper: most steps see a few pairs only; and a fit with a workspace goes on to the same bits."""
    x, y = labelled(rng, 20)
    kind, given_pairs = (pf.ITML, every_pair(x, y)) if listed else (pf.ITML_Supervised, (x, y))
    best = kind(tol=1e-9).fit(*given_pairs)
    options = {"method": "project_and_forget", "n_sampled": 20, "random_state": 3, "tol": 1e-4}
    model = kind(**options, max_iter=5000).fit(*given_pairs)
    assert model.status_ == "converged" and model.objective_ == pytest.approx(best.objective_, rel=2e-4)
    assert 0.05 * model.n_iter_ < model.n_passes_ < 0.2 * model.n_iter_ + 1
    assert max(record["added"] for record in model.history_) <= 40
    path = tmp_path / "fit.pf"
    kind(**options, workspace=path, max_iter=7).fit(*given_pairs)
    assert np.array_equal(pf.resume(path).components, model.components_)
    other = kind(**{**options, "random_state": 4}, max_iter=5000).fit(*given_pairs)
    assert not np.array_equal(other.components_, model.components_)


# -- many pairs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_the_bits_do_not_depend_on_workers(rng, monkeypatch, method):
    monkeypatch.setattr(numbers, "TILE", 16)
    monkeypatch.setattr(numbers, "SAMPLE", 500)
    x, y = labelled(rng, 60)
    options = {"method": method, "max_iter": 5}
    one, three = (pf.ITML_Supervised(workers=workers, **options).fit(x, y) for workers in (1, 3))
    np.testing.assert_array_equal(one.components_, three.components_)
    assert one.lower_bound_ == three.lower_bound_


def test_a_sample_comes_first_and_all_pairs_decide(rng, monkeypatch):
    x, y = labelled(rng, 120)
    exact = pf.ITML_Supervised(tol=1e-9).fit(x, y)
    monkeypatch.setattr(numbers, "SAMPLE", 400)
    monkeypatch.setattr(numbers, "TILE", 32)
    sampled = pf.ITML_Supervised(tol=1e-9).fit(x, y)
    assert sampled.objective_ == pytest.approx(exact.objective_, rel=1e-8)


def test_close_pairs_lose_no_digits(rng):
    """Inner products alone would: 1e-14 of the squared norms is below rounding."""
    x, y = labelled(rng, 30, 3)
    x[1] = x[0] * (1 + 1e-7)
    y[:2] = 0, 1
    model = pf.ITML_Supervised(tol=1e-9).fit(x, y)
    pairs, sign = every_pair(x, y)
    prior, terms = np.diag(1.0 / x.var(axis=0)), naive_terms(model, 3, sign)
    value = naive.itml.objective(model.get_mahalanobis_matrix(), prior, pairs[:, 0] - pairs[:, 1], sign, *terms)
    assert model.objective_ == pytest.approx(value, rel=1e-9)


def test_a_look_at_all_pairs_is_a_look_at_their_list(rng, monkeypatch):
    from ooc_pf.itml.inputs import all_pairs_task

    monkeypatch.setattr(numbers, "TILE", 16)
    x, y = labelled(rng, 50)
    x[3], x[4] = x[2], x[2]
    source = all_pairs_task(x, y, 10.0, "identity", True, None).source
    root = np.linalg.cholesky(np.cov(rng.normal(size=(4, 9))))
    whole, listed = source.look(root, Crew()), source.sample(10**6, rng).look(root, Crew())
    assert whole.loss == pytest.approx(listed.loss, rel=1e-12)
    assert whole.conjugate == pytest.approx(listed.conjugate, rel=1e-12)
    np.testing.assert_allclose(whole.gradient, listed.gradient, rtol=1e-9, atol=1e-9 * abs(whole.gradient).max())
    assert sum(count_pairs(source.classes, source.groups)) == 50 * 49 // 2 - 3


def test_listed_pairs_come_from_a_memory_map(rng, tmp_path):
    x, y = labelled(rng)
    pairs, sign = every_pair(x, y)
    np.save(tmp_path / "pairs.npy", pairs)
    mapped = np.load(tmp_path / "pairs.npy", mmap_mode="r")
    expected = pf.ITML().fit(pairs, sign).components_
    np.testing.assert_array_equal(pf.ITML(memory="100MB").fit(mapped, sign).components_, expected)


def test_a_budget_too_small_is_refused_with_the_least_that_will_do(rng):
    with pytest.raises(pf.BudgetError, match="least that will do is"):
        pf.ITML_Supervised(memory="1KB").fit(*labelled(rng))


# -- what is handed over ----------------------------------------------------------------------------------------------


def test_equal_points_are_left_out_and_counted(rng):
    x, y = labelled(rng)
    x[5], x[6] = x[0], x[0]
    assert pf.ITML_Supervised().fit(x, y).n_dropped_ == 3
    pairs, sign = every_pair(x, y)
    for method in METHODS:
        assert pf.ITML(method=method, max_iter=3).fit(pairs, sign).n_dropped_ == 3


def test_constant_columns_stay_as_they_are(rng):
    x, y = labelled(rng)
    x[:, 2] = 7.0
    matrix = pf.ITML_Supervised().fit(x, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(matrix[2], [0, 0, 1, 0], atol=1e-12)
    with pytest.raises(pf.InputError, match="rank 3 of 4; column 2 is constant"):
        pf.ITML_Supervised(prior="covariance").fit(x, y)


def test_a_covariance_prior_makes_scales_and_mixtures_irrelevant(rng):
    x, y = labelled(rng)
    mixture = rng.normal(size=(4, 4))
    one, other = (pf.ITML_Supervised(prior="covariance", tol=1e-10).fit(points, y) for points in (x, x @ mixture))
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-8)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"y": np.zeros(40)}, "one class only"),
        ({"gamma": -1.0}, "gamma must be a positive number"),
        ({"prior": "nonsense"}, 'prior must be "identity"'),
        ({"prior": np.eye(3)}, "prior must be 4 x 4"),
        ({"prior": -np.eye(4)}, "positive definite"),
        ({"method": "nonsense"}, "method must be one of"),
        ({"n_constraints": 0}, "n_constraints must be"),
        ({"tol": 0.0}, "tol must be"),
        ({"bounds": (2.0, 1.0)}, "bounds must be two squared distances"),
    ],
)
def test_what_cannot_be_used_is_named(rng, change, message):
    x, y = labelled(rng)
    y, bounds = change.pop("y", y), change.pop("bounds", None)
    with pytest.raises(pf.InputError, match=message):
        pf.ITML_Supervised(**change).fit(x, y, bounds=bounds)


def test_pairs_that_cannot_be_used_are_named(rng):
    pairs, sign = every_pair(*labelled(rng))
    wrong = pairs.copy()
    wrong[17, 1, 2] = np.nan
    cases = [
        (wrong, sign, r"pairs\[17, 1, 2\] is nan"),
        (pairs, np.where(sign > 0, 1, 0), r"y must be \+1 \(similar\) or -1"),
        (pairs, sign[:-1], "one label for each"),
        (pairs[:, 0], sign, "pairs must be"),
        (np.zeros((3, 2), int), [1, 1, -1], "give the points as preprocessor="),
        (pairs[:, [0, 0]], sign, "all 780 pairs are of equal points"),
        (pairs[:0], sign[:0], "there are no pairs"),
    ]
    for given_pairs, y, message in cases:
        with pytest.raises(pf.InputError, match=message):
            pf.ITML().fit(given_pairs, y)
    with pytest.raises(pf.InputError, match="name point 9, but preprocessor= has 3"):
        pf.ITML(preprocessor=np.eye(3)).fit(np.array([[0, 9]]), [1])


@pytest.mark.parametrize("kind", [1, -1])
def test_one_kind_of_pairs_is_enough(rng, kind):
    pairs, _ = every_pair(*labelled(rng))
    assert pf.ITML().fit(pairs, np.full(len(pairs), kind)).status_ == "converged"


# -- the estimator ----------------------------------------------------------------------------------------------------


def test_distances_scores_and_the_metric_are_one(rng):
    x, y = labelled(rng)
    model = pf.ITML_Supervised().fit(x, y)
    pairs = np.stack([x[:10], x[10:20]], axis=1)
    distance = model.pair_distance(pairs)
    np.testing.assert_allclose(distance, [model.get_metric()(a, b) for a, b in pairs])
    np.testing.assert_allclose(distance, np.linalg.norm(model.transform(x[:10]) - model.transform(x[10:20]), axis=1))
    np.testing.assert_array_equal(model.pair_score(pairs), -distance)
    assert model.get_metric()(x[0], x[1], squared=True) == pytest.approx(model.pair_distance(x[None, :2])[0] ** 2)


def test_it_works_in_a_pipeline_and_is_cloned(rng):
    x, y = labelled(rng, 80)
    model = make_pipeline(clone(pf.ITML_Supervised(n_constraints=200, random_state=0)), KNeighborsClassifier(3))
    assert model.fit(x, y).score(x, y) > 0.8
    again = pf.ITML_Supervised(n_constraints=200, random_state=0).fit(x, y)
    np.testing.assert_array_equal(again.components_, model[0].components_)


@pytest.mark.parametrize("method", METHODS)
def test_it_stops_when_it_is_asked_to(rng, method):
    x, y = labelled(rng)
    seen = []
    model = pf.ITML_Supervised(method=method, tol=1e-12, callback=lambda record: seen.append(record) or len(seen) > 1)
    assert model.fit(x, y).status_ == "callback"
    assert len(seen) == 2 and seen[1]["lower_bound"] <= model.objective_
    hurried = pf.ITML_Supervised(method=method, max_time=0.0).fit(x, y)
    assert hurried.status_ == "time_limit" and np.isfinite(hurried.components_).all()
    limited = pf.ITML_Supervised(method=method, max_iter=1, tol=1e-12).fit(x, y)
    assert limited.status_ == "iteration_limit" and limited.lower_bound_ <= limited.objective_


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    for name in ("itml", "scikit"):
        monkeypatch.delitem(sys.modules, f"ooc_pf.problems.{name}")
    itml = importlib.import_module("ooc_pf.problems.itml")
    with pytest.raises(ImportError, match=r"pip install 'ooc_pf\[learn\]'"):
        itml.ITML()


# -- pairs in blocks --------------------------------------------------------------------------------------------------


def in_blocks(pairs, sign, cuts):
    return list(zip(np.split(pairs, cuts), np.split(sign, cuts), strict=True))


@given(st.lists(st.integers(0, 200), max_size=6))
@hypothesis_settings(max_examples=15, deadline=None)
def test_pairs_in_blocks_are_the_same_pairs(cuts):
    rng = np.random.default_rng(len(cuts))
    points, classes = labelled(rng, 30)
    index = rng.integers(0, 30, (200, 2))
    sign = np.where(classes[index[:, 0]] == classes[index[:, 1]], 1, -1)
    whole, blocks = pf.ITML().fit(points[index], sign), in_blocks(points[index], sign, sorted(cuts))
    for given_as in (iter(blocks), lambda: iter(blocks), (block for block in blocks)):
        assert np.array_equal(pf.ITML().fit(given_as).components_, whole.components_)
    numbers = pf.ITML(preprocessor=points).fit(iter(in_blocks(index, sign, sorted(cuts))))
    assert np.array_equal(numbers.components_, whole.components_)


@pytest.mark.parametrize(
    "blocks, message",
    [
        ([], "there are no pairs"),
        ([np.ones((3, 2, 2))], "must be .pairs, y.; number 0 is ndarray"),
        ([(np.ones((3, 3, 2)), np.ones(3))], "pairs of block 0 must be"),
        ([(np.ones((3, 2, 2)), np.ones(3)), (np.ones((3, 2, 4)), np.ones(3))], r"block 1 are \[2, 4\] each"),
        ([(np.ones((3, 2, 2)), np.ones(4))], "block 0 has 3 pairs and labels of shape"),
        ([(np.ones((3, 2, 2)), np.full(3, 2))], "y must be .1"),
        ([(np.full((3, 2, 2), np.nan), np.ones(3))], r"pairs\[0, 0, 0\] is nan"),
    ],
)
def test_blocks_that_cannot_be_used_are_named(blocks, message):
    with pytest.raises(pf.InputError, match=message):
        pf.ITML().fit(iter(blocks))
    with pytest.raises(pf.InputError, match="leave out y"):
        pf.ITML().fit(iter(blocks), [1])
    with pytest.raises(pf.InputError, match="requires y to be passed"):
        pf.ITML().fit(np.ones((3, 2, 2)))


@pytest.mark.parametrize("size", [0.02, 30.0])
def test_the_path_of_a_step_is_smooth_and_stays_positive_definite(rng, size):
    from ooc_pf.itml.newton import Path

    direction = rng.normal(size=(6, 6)) * size
    path = Path.of(direction + direction.T)
    assert path.bends == (size > 1.0)
    straight, most = path.straightened()
    assert np.linalg.eigvalsh(straight.at(most))[0] == pytest.approx(1.0 - numbers.FALL)
    for part in (1e-4, 1e-3, 0.01, 0.3, 1.0):
        near = 1e-5 * part
        slope = (path.at(part + near) - path.at(part - near)) / (2 * near)
        np.testing.assert_allclose(slope, path.velocity(part), rtol=1e-4, atol=1e-4 * abs(slope).max())
        assert np.linalg.eigvalsh(path.at(part))[0] > 0.0
        np.testing.assert_allclose(path.root(part) @ path.root(part).T, path.at(part), rtol=1e-9, atol=1e-9)


def test_large_weights_need_few_looks(rng):
    """Steps that bend from the start are cut short here, and take half as many looks again."""
    x = rng.standard_t(2, size=(150, 10)) * np.logspace(0, 2, 10)
    y = (x[:, 0] + rng.normal(size=150) > 0).astype(int)
    model = pf.ITML_Supervised(1000.0).fit(x, y)
    assert model.status_ == "converged" and model.n_passes_ <= 13


# -- workspaces -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("listed", [False, True])
def test_a_fit_goes_on_from_its_workspace(rng, tmp_path, monkeypatch, method, listed):
    monkeypatch.setattr(numbers, "SAMPLE", 200)
    x, y = labelled(rng, 30)
    kind, given_pairs = (pf.ITML, every_pair(x, y)) if listed else (pf.ITML_Supervised, (x, y))
    gamma, tol = (100.0, 1e-7) if method == "newton" else (10.0, 1e-4)
    model = kind(gamma, method=method, tol=tol, workspace=tmp_path / "fit.pf", max_iter=2)
    assert model.fit(*given_pairs).status_ == "iteration_limit"
    assert pf.verify(tmp_path / "fit.pf")["lower_bound"] <= model.lower_bound_
    while model.status_ != "converged":
        model.fit(*given_pairs)
    whole = kind(gamma, method=method, tol=tol).fit(*given_pairs)
    assert np.array_equal(model.components_, whole.components_) and model.n_iter_ == whole.n_iter_
    assert (model.objective_, model.lower_bound_) == (whole.objective_, whole.lower_bound_)
    assert model.n_passes_ == whole.n_passes_
    assert pf.verify(tmp_path / "fit.pf")["status"] == "converged"


def test_a_workspace_keeps_to_its_pairs(rng, tmp_path):
    x, y = labelled(rng)
    pairs, sign = every_pair(x, y)
    options = {"workspace": tmp_path / "fit.pf", "max_iter": 2, "tol": 1e-10}
    pf.ITML(**options).fit(pairs, sign)
    blocks = zip(np.split(pairs, 4), np.split(sign, 4), strict=True)
    assert pf.ITML(**{**options, "max_iter": 100}).fit(blocks).status_ == "converged"
    for change, given_pairs in (
        ({"gamma": 3.0}, pairs),
        ({"prior": "covariance"}, pairs),
        ({}, pairs + 1e-3 * pairs**2),
    ):
        with pytest.raises(pf.WorkspaceError, match="holds another set of pairs, or prior, gamma or bounds"):
            pf.ITML(**options, **change).fit(given_pairs, sign)
    with pytest.raises(pf.WorkspaceError, match="method: 'newton' then"):
        pf.ITML(**options, method="project_and_forget").fit(pairs, sign)
    assert pf.ITML(**options, method="project_and_forget", restart=True).fit(pairs, sign).n_iter_ == 2


@pytest.mark.parametrize("method", METHODS)
def test_a_workspace_that_nobody_wrote_is_refused(rng, tmp_path, method):
    from ooc_pf.storage.arrays import write_array
    from ooc_pf.storage.workspace import Workspace

    x, y = labelled(rng)
    path = tmp_path / "fit.pf"
    model = pf.ITML_Supervised(method=method, workspace=path, max_iter=2, tol=1e-10)
    model.fit(x, y)
    for name in ("numbers", "root", "bound", "steps") if method == "newton" else ("matrix", "best", "rows/dual"):
        copy = tmp_path / f"copy-{name.replace('/', '-')}.pf"
        shutil.copytree(path, copy)
        place = Workspace(copy)
        shutil.rmtree(place.generation / name)
        group, last = (place.generation / name).parent, name.split("/")[-1]
        write_array(group, last, np.full(5, np.nan))
        with pytest.raises(pf.WorkspaceError):
            pf.verify(copy)
        with pytest.raises(pf.WorkspaceError):
            model.set_params(workspace=copy).fit(x, y)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_step_whose_length_overflows_is_none(rng):
    """Nothing is left of the direction in single precision, and nothing is divided by its curvature."""
    pairs = ListedPairs(
        lambda first, last: np.eye(2)[first:last], np.array([1, -1], np.int8), 2, Terms(1.0, 1.0, 1.0, 1.0)
    )
    place = Place(np.eye(2), 1.0, np.diag([2.0, 1.0]), 0.0)
    flat = np.diag([1.0, 0.0]), np.diag([1e-200, 1.0])
    now, curvature = Solved(place, Bound(np.eye(2))), Curvature(pairs, exact=False, steps=[flat])
    assert not step(now, pairs, curvature, Crew(None, np.zeros(1, np.uint8)))
    assert now.place is place


def test_a_bound_that_rounding_left_without_a_factor_stays():
    root = np.eye(2)
    place = Place(root, 0.0, np.diag([2.0, 3.0]), 0.0)
    bound = Bound(np.array([[1.0, 1.0], [1.0, 1.0 - 1e-12]]), 0.5, 0.25)
    bound.raise_by(place)
    assert (bound.conjugate, bound.value) == (0.5, 0.25)
    bound = Bound(np.eye(2))
    bound.raise_by(place)
    assert bound.value == pytest.approx(np.log(6.0))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_line_search_that_meets_no_numbers_finds_no_step():
    """Where all that is looked at overflows, as from a changed workspace, the steps end."""
    sound = ListedPairs(
        lambda first, last: 3.0 * np.eye(2)[first:last], np.array([1, -1], np.int8), 2, Terms(1.0, 1.0, 1.0, 1.0)
    )
    crew = Crew(None, np.zeros(1, np.uint8))
    now = first_place(sound, np.eye(2), crew)
    place = now.place

    class Overflowing:
        def look(self, root, crew):
            return sound.look(root, crew)._replace(loss=np.inf, gradient=np.full((2, 2), np.nan))

    assert not step(now, Overflowing(), Curvature(sound, exact=True), crew)
    assert now.place is place
    assert step(now, sound, Curvature(sound, exact=True), crew)
