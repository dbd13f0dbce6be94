"""Workspaces of transport and metric learning go on, are verified and exported from their files alone."""

import json
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.commands.cli import main
from ooc_pf.engine.result import Held
from ooc_pf.itml import settings as itml_settings
from ooc_pf.itml.check import plain_bounds
from ooc_pf.itml.data import read_held as read_pairs
from ooc_pf.itml.solve import dress
from ooc_pf.storage.arrays import read_array, write_array
from ooc_pf.storage.workspace import Workspace
from ooc_pf.transport import settings as transport_settings
from tests.gallery import colour_cloud

SOFT, EXACT = {"gamma": 100.0}, {"marginals": "exact", "reg": 0.3}


@pytest.fixture
def clouds(rng):
    a, b = rng.random(60), rng.random(50)
    return a / a.sum(), b / b.sum(), colour_cloud(rng, 60), colour_cloud(rng, 50)


def labelled(rng, n=40):
    classes = np.arange(n) % 3
    return rng.normal(size=(n, 3)) * [1.0, 3.0, 0.5] + np.outer(classes, [2.0, 0.0, 1.0]), classes


def edit(path, change):
    """Change a matrix in a workspace."""
    matrix = np.load(path, mmap_mode="r+")
    change(matrix)
    matrix.flush()


# -- transport --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [SOFT, EXACT])
@pytest.mark.parametrize("form", ["points", "distances", "matrix"])
def test_transport_goes_on_from_files_alone(clouds, tmp_path, options, form):
    a, b, x, y = clouds
    cost = ((x[:, None] - y) ** 2).sum(axis=2) if form == "matrix" else (x, y)
    options = {**options, "metric": "euclidean" if form == "distances" else "sqeuclidean"}
    whole = pf.quadratic_transport(a, b, cost, **options)
    path = tmp_path / "run.pf"
    assert pf.quadratic_transport(a, b, cost, workspace=path, max_iter=3, **options).status == "iteration_limit"
    assert pf.verify(path)["pairs_read"] == 3000
    result = pf.resume(path)
    assert result.converged and result.n_iter == whole.n_iter
    for found in (result, pf.open(path)):
        assert (found.plan != whole.plan).nnz == 0
        assert all(np.array_equal(*each) for each in zip(found.potentials, whole.potentials, strict=True))
        assert (found.objective, found.lower_bound, found.row_error) == (
            whole.objective, whole.lower_bound, whole.row_error,
        )  # fmt: skip
    report = pf.verify(path)
    assert np.isclose(report["objective"], whole.objective, rtol=1e-12)
    assert np.isclose(report["lower_bound"], whole.lower_bound, rtol=1e-12)
    assert "gamma" not in options or report["largest_excess"] <= 1e-13


def test_a_function_of_costs_is_not_held_and_says_so(clouds, tmp_path):
    a, b, x, y = clouds

    def cost(rows, columns):
        return ((x[rows][:, None] - y[columns]) ** 2).sum(axis=2)

    path = tmp_path / "run.pf"
    pf.quadratic_transport(a, b, cost, workspace=path, max_iter=2, **SOFT)
    assert pf.verify(path)["why"] == "its costs are a function of the caller"
    with pytest.raises(pf.WorkspaceError, match=r"function of the caller; to go on call quadratic_transport again"):
        pf.resume(path)
    assert pf.quadratic_transport(a, b, cost, workspace=path, **SOFT).converged
    assert not (path / "costs.npy").exists()
    with pytest.raises(pf.WorkspaceError, match="has no plan to export"):
        pf.export(path, tmp_path / "plan.npz")


def test_a_matrix_too_large_to_hold_stays_where_it_is(clouds, tmp_path, monkeypatch):
    a, b, x, y = clouds
    monkeypatch.setattr(transport_settings, "HELD", 1000)
    path = tmp_path / "run.pf"
    pf.quadratic_transport(a, b, ((x[:, None] - y) ** 2).sum(axis=2), workspace=path, **SOFT)
    assert pf.verify(path)["why"] == "its matrix of costs has 24,000 bytes, more than 1,000"
    with pytest.raises(pf.WorkspaceError, match="24,000 bytes"):
        pf.resume(path)


def test_costs_that_were_changed_are_found(clouds, tmp_path):
    a, b, x, y = clouds
    path = tmp_path / "run.pf"
    pf.quadratic_transport(a, b, ((x[:, None] - y) ** 2).sum(axis=2), workspace=path, **SOFT)

    def dearer(matrix):
        matrix[3, 4] += 1.0  # of a pair that is not used, so that values stay

    edit(path / "costs.npy", dearer)
    with pytest.raises(pf.WorkspaceError, match="masses and costs are not those"):
        pf.verify(path)
    with pytest.raises(pf.WorkspaceError, match="holds another pair of masses"):
        pf.resume(path)
    (path / "costs.npy").unlink()
    with pytest.raises(pf.WorkspaceError, match=r"costs\.npy.*not there"):
        pf.verify(path)


@pytest.mark.parametrize("options", [SOFT, EXACT])
def test_claims_that_the_pairs_do_not_bear_out_are_found(clouds, tmp_path, options):
    """Potentials that are too high, and a plan that moves too little, each with claims that fit the manifest."""
    a, b, x, y = clouds
    path = tmp_path / "run.pf"
    pf.quadratic_transport(a, b, (x, y), workspace=path, **options)
    place = Workspace(path)
    kept = _answer(place)
    for change, message in ((slice(0, 5), "not the best ones known"), (slice(-5, None), "objective|lacks")):
        changed = kept.copy()
        changed[change] = changed[change] * 0.5 + 0.01 * (change.start == 0)
        with place.locked():
            _put_answer(place, changed)
        with pytest.raises(pf.WorkspaceError, match=message):
            pf.verify(path)
    with place.locked():
        _put_answer(place, kept)
    assert pf.verify(path)["pairs_read"] == 3000


@pytest.mark.parametrize(
    ("options", "array", "message"),
    [
        (SOFT, "rows/cost", "the costs are not those of the pairs"),
        (SOFT, "rows/right", "remembered twice|not those of the pairs"),
        (SOFT, "best", "violate a pair|lower bound"),
        (SOFT, "lower", "lower bound to go on with"),
        (EXACT, "best", "lower bound"),
        (EXACT, "lower", "lower bound to go on with"),
        (EXACT, "plan", "lacks|not what a run writes"),
    ],
)
def test_a_changed_state_is_found_before_a_run_goes_on_from_it(clouds, tmp_path, mutate, options, array, message):
    """The fingerprints are made to fit, so that only a look at masses and costs can tell."""
    a, b, x, y = clouds
    path = tmp_path / "run.pf"
    solve = partial(pf.quadratic_transport, a, b, (x, y), workspace=path, **options)
    iterations = 3 if options is SOFT else solve().n_iter - 1
    solve(max_iter=iterations, restart=True)
    assert pf.verify(path)["pairs_read"] == 3000
    place = Workspace(path)
    group, name = place.generation / array.rpartition("/")[0], array.rpartition("/")[2]

    def other(values):
        values[-1] = values[0] if name == "right" else 1.01 * values[-1] + 1e-3
        return values

    _rewrite(group, name, other)
    mutate.reseal(path)
    with pytest.raises(pf.WorkspaceError, match=message):
        pf.verify(path)


@pytest.mark.parametrize("options", [SOFT, EXACT])
@pytest.mark.parametrize("kept", [0, 59, 62, 109, 111])
def test_an_answer_that_lacks_potentials_is_not_shown(clouds, tmp_path, mutate, options, kept):
    """There are 60 and 50 points; three numbers more are a pair of the plan."""
    a, b, x, y = clouds
    path = tmp_path / "run.pf"
    pf.quadratic_transport(a, b, (x, y), workspace=path, **options)
    _rewrite(Workspace(path).outcome, "x", lambda answer: answer[:kept])
    mutate.reseal(path)
    for use in (pf.open, pf.verify, pf.resume):
        with pytest.raises(pf.WorkspaceError, match=r"x has not one potential|x is not what a run writes"):
            use(path)


def test_a_transport_without_its_fingerprint_is_refused(clouds, tmp_path, mutate):
    a, b, x, y = clouds
    path = tmp_path / "run.pf"
    pf.quadratic_transport(a, b, (x, y), workspace=path, max_iter=2, **SOFT)
    manifest = json.loads((path / "manifest.json").read_text())
    del manifest["graph"]["source"]["digest"]
    (path / "manifest.json").write_text(json.dumps(manifest))
    mutate.reseal(path)
    for use in (pf.open, pf.verify, pf.resume):
        with pytest.raises(pf.WorkspaceError, match=r"it lacks graph\.source\.digest"):
            use(path)


def _rewrite(group, name, change):
    """Change the values of an array; its checksum holds."""
    values = change(read_array(group, name))
    shutil.rmtree(group / name)
    write_array(group, name, values)


def _answer(place):
    return read_array(place.outcome, "x", dtype=np.float64)


def _put_answer(place, values):
    place.commit(write_answer=lambda group: write_array(group, "x", values), facts={})


# -- metric learning --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["newton", "project_and_forget"])
@pytest.mark.parametrize("pairs", ["all", "drawn", "listed", "blocks"])
def test_a_metric_is_learnt_on_from_files_alone(rng, tmp_path, method, pairs):
    x, y = labelled(rng, 24)
    path = tmp_path / "fit.pf"
    options = {"gamma": 10.0, "method": method, "tol": 1e-7 if method == "newton" else 1e-4}
    a, b = np.triu_indices(len(x), 1)
    listed, sign = np.stack([x[a], x[b]], axis=1), np.where(y[a] == y[b], 1, -1)
    if pairs in ("all", "drawn"):
        model = pf.ITML_Supervised(**options, n_constraints=None if pairs == "all" else 30, random_state=0)
        given = (x, y)
    else:
        model = pf.ITML(**options)
        given = (listed, sign) if pairs == "listed" else (lambda: iter([(listed, sign)]),)
    whole = model.fit(*given).components_
    model.set_params(workspace=path, max_iter=2)
    assert model.fit(*given).status_ == "iteration_limit"
    assert pf.verify(path)["pairs_read"] > 0
    result = pf.resume(path)
    assert result.converged and np.array_equal(result.components, whole)
    assert np.array_equal(pf.open(path).x, whole)
    report, source = pf.verify(path), read_pairs(Workspace(path)).source
    assert report["pairs_read"] == source.size and report["lower_bound_of_x"] <= result.objective
    assert np.isclose(report["objective"], result.objective, rtol=1e-11)
    assert report["lower_bound_of_x"] >= result.objective * (1 - 1e-3)
    assert plain_bounds(source, np.eye(3))[0] > result.objective  # the prior is no better


def test_pairs_too_many_to_hold_say_what_to_do(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(itml_settings, "HELD", 100)
    x, y = labelled(rng)
    path = tmp_path / "fit.pf"
    model = pf.ITML_Supervised(workspace=path, max_iter=1, tol=1e-12).fit(x, y)
    assert model.status_ == "iteration_limit" and pf.verify(path)["pairs_read"] == 0
    with pytest.raises(pf.WorkspaceError, match=r"960 bytes, more than 100; to go on call ITML\.fit or"):
        pf.resume(path)
    assert model.set_params(max_iter=50, tol=1e-6).fit(x, y).status_ == "converged"


def test_pairs_that_were_changed_are_found(rng, tmp_path):
    x, y = labelled(rng)
    path = tmp_path / "fit.pf"
    pf.ITML_Supervised(n_constraints=200, random_state=0, workspace=path, max_iter=1).fit(x, y)

    def farther(matrix):
        matrix[123] *= 1.5

    edit(path / "pairs.npy", farther)
    for work in (pf.verify, pf.resume):
        with pytest.raises(pf.WorkspaceError, match="pairs are not those that it was made with"):
            work(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ("root", "objective to go on with"),
        ("numbers", "objective to go on with"),
        ("dual", "the stored dual is not that of its root"),
        ("steps", "one without curvature"),
    ],
)
def test_steps_go_on_only_from_what_the_pairs_say(rng, tmp_path, mutate, monkeypatch, array, message):
    """Each number is one that might be there, and the answer shown is right: the next step would tell, too late."""
    monkeypatch.setattr(itml_settings, "SAMPLE", 50)
    path = tmp_path / "fit.pf"
    pf.ITML_Supervised(workspace=path, max_iter=3, tol=1e-12).fit(*labelled(rng))
    assert pf.verify(path)["pairs_read"] > 0

    def other(values):
        if array == "steps":
            values[9:18] *= -1.0  # how the gradient changed along the first one
        elif array == "root":
            values[3] += 0.5  # below the diagonal, so that the determinant stays
        else:
            values[0] *= 1.01
        return values

    _rewrite(Workspace(path).generation, array, other)
    mutate.reseal(path)
    with pytest.raises(pf.WorkspaceError, match=message):
        pf.verify(path)


def test_points_that_were_changed_are_found(rng, tmp_path, mutate):
    path = tmp_path / "fit.pf"
    pf.ITML_Supervised(workspace=path, max_iter=1).fit(*labelled(rng))
    _rewrite(path / "edges.zarr", "points", lambda points: points + 1e-12)
    mutate.reseal(path)
    with pytest.raises(pf.WorkspaceError, match="pairs are not those that it was made with"):
        pf.verify(path)
    with pytest.raises(pf.WorkspaceError, match="holds another set of pairs"):
        pf.resume(path)


def test_a_metric_of_another_size_is_refused(rng, tmp_path):
    path = tmp_path / "fit.pf"
    pf.ITML_Supervised(workspace=path).fit(*labelled(rng))
    longer = replace(pf.open(path), read_x=Held(np.zeros(10)))
    with pytest.raises(pf.WorkspaceError, match="the stored x is not the root of a matrix"):
        dress(Workspace(path), longer)


# -- the command ------------------------------------------------------------------------------------------------------


def test_both_on_the_command_line(clouds, rng, tmp_path, capsys):
    a, b, x, y = clouds
    run, fit = str(tmp_path / "run.pf"), str(tmp_path / "fit.pf")
    whole = pf.quadratic_transport(a, b, (x, y), **EXACT)
    pf.quadratic_transport(a, b, (x, y), workspace=run, max_iter=2, **EXACT)
    pf.ITML_Supervised(workspace=fit, max_iter=1, tol=1e-8).fit(*labelled(rng))
    for path, words in ((run, "marginal errors"), (fit, "no metric can do better")):
        assert main(["resume", path, "--max-iter", "1", "--quiet"]) == 3
        assert main(["resume", path, "--quiet"]) == 0
        assert words in capsys.readouterr().out
        assert main(["verify", path, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["pairs_read"] > 0
        assert main(["status", path]) == 0 and main(["report", path]) == 0
    assert main(["export", run, str(tmp_path / "plan.csv")]) == 0
    masses = np.genfromtxt(tmp_path / "plan.csv", delimiter=",", skip_header=1)
    assert np.isclose(masses[:, 2].sum(), 1.0) and len(masses) == whole.plan.nnz
    assert main(["export", fit, str(tmp_path / "metric.npz")]) == 0
    assert np.array_equal(np.load(tmp_path / "metric.npz")["components"], pf.open(fit).components)
