"""Workspaces that were tampered with: whatever is changed, the end is one of our errors or the right answer."""

import copy
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.commands.explain import explain
from ooc_pf.commands.status import read_status
from ooc_pf.storage import arrays, records
from tests.gallery import CASES, go_on
from tests.properties import assert_same_bits

TOOLS = Path(__file__).parents[2] / "tools"
OURS = (pf.WorkspaceError, pf.InputError, pf.BudgetError)
USES = (pf.open, read_status, pf.report, pf.verify, pf.resume)
pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Workspaces after three iterations, by the name of their case, made once and copied."""
    folder = tmp_path_factory.mktemp("made")

    def copied(name, place):
        if not (folder / name).exists():
            CASES[name](workspace=folder / name, max_iter=3)
        shutil.copytree(folder / name, place)
        return place

    return copied


def rewrite(group, name, change):
    """Change the values of an array; its checksum holds."""
    values = change(arrays.read_array(group, name).copy())
    shutil.rmtree(group / name)
    arrays.write_array(group, name, values)


def change_manifest(run, path, value):
    """Set an entry, by its path with dots; `...` removes it."""
    manifest = json.loads((run / "manifest.json").read_text())
    *holders, name = path.split(".")
    holder = manifest
    for each in holders:
        holder = holder[each]
    if value is ...:
        del holder[name]
    else:
        holder[name] = value
    (run / "manifest.json").write_text(json.dumps(manifest))


# -- arrays that kernels follow ---------------------------------------------------------------------------------------


def put(at, value):
    def change(values):
        values[at] = value
        return values

    return change


WRONG = {
    "beyond the end": put(-1, 2**30),
    "below zero": put(0, -5),
    "shorter": lambda values: values[:-1],
    "longer": lambda values: np.append(values, values[-1:]),
    "empty": lambda values: values[:0],
    "another type": lambda values: values.astype(np.float64),
}
GRAPH = ("arc_start", "arc_node", "arc_edge", "sources", "closer_start", "closer_node", "closer_edge")


@pytest.mark.parametrize("name", ["nearness", "clustering", "external"])
@pytest.mark.parametrize("array", GRAPH)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_graph_that_leads_astray_is_refused(made, mutate, tmp_path, name, array, wrong):
    """Even where the fingerprints of the manifest were made to agree."""
    if (array, wrong) == ("arc_start", "longer"):
        pytest.skip("one more node, without arcs, leads nowhere")
    run = made(name, tmp_path / "run.pf")
    rewrite(run / "graph.zarr", array, WRONG[wrong])
    mutate.reseal(run)
    with pytest.raises(pf.WorkspaceError, match="damaged"):
        pf.resume(run)
    with pytest.raises(pf.WorkspaceError, match="damaged"):
        pf.verify(run, oracle="numba")


def test_starts_that_go_back_and_sources_twice_are_refused(made, mutate, tmp_path):
    for array, change in (
        ("arc_start", lambda s: np.append(s[0], np.append(s[-2:0:-1], s[-1]))),
        ("sources", put(0, 1)),
    ):
        run = made("nearness", tmp_path / array)
        if array == "sources":
            rewrite(run / "graph.zarr", "sources", put(1, arrays.read_array(run / "graph.zarr", "sources")[0]))
        else:
            rewrite(run / "graph.zarr", array, change)
        mutate.reseal(run)
        with pytest.raises(pf.WorkspaceError, match="no graph"):
            pf.resume(run)


@pytest.mark.parametrize("name", ["nearness", "clustering", "linear", "linear-external"])
@pytest.mark.parametrize("array", ["arc_node", "arc_edge"])
def test_arcs_without_a_way_back_are_refused(made, mutate, tmp_path, name, array):
    """Each number is one that may be there; but a search that walks back would find nothing."""
    run = made(name, tmp_path / "run.pf")
    held = arrays.read_array(run / "graph.zarr", array)
    for change in (put(0, held[-1]), lambda values: np.append(values[1:], values[:1])):
        rewrite(run / "graph.zarr", array, change)
        mutate.reseal(run)
        for use in (pf.resume, pf.verify):
            with pytest.raises(pf.WorkspaceError, match="no graph"):
                use(run)
        rewrite(run / "graph.zarr", array, lambda _, held=held: held)


@pytest.mark.parametrize("group", ["edges.zarr", "graph.zarr", "gen", "feasible"])
def test_arrays_of_another_run_are_refused(made, tmp_path, group):
    """Each sound by itself, and of the right size: only the fingerprints tell."""
    run, other = made("nearness", tmp_path / "run.pf"), tmp_path / "other.pf"
    u, v, d = (arrays.read_array(run / "edges.zarr", name) for name in ("u", "v", "value"))
    pf.metric_nearness((u, v, np.roll(d, 1)), tol=1e-6, workspace=other, max_iter=3)
    if group == "graph.zarr":  # the same, as the edges are: let some closing edges change places
        rewrite(other / group, "closer_edge", lambda edges: np.roll(edges, 1))
    shutil.rmtree(run / group)
    shutil.copytree(other / group, run / group)
    with pytest.raises(pf.WorkspaceError, match="not those that were committed"):
        pf.resume(run)
    with pytest.raises(pf.WorkspaceError):
        pf.verify(run, oracle="numba")


TABLES = [
    ("clustering", "gen", "y", put(0, np.nan)), ("clustering", "gen", "y", WRONG["shorter"]),
    ("complete", "gen", "pairs", put(0, 2**30)), ("complete", "gen", "pairs", WRONG["shorter"]),
    ("complete", "gen", "pairs", put(1, -1)), ("complete", "feasible", "x", WRONG["empty"]),
    ("linear", "gen", "target", WRONG["shorter"]), ("linear", "gen", "target", put(3, np.inf)),
    ("nearness-weights", "graph.zarr", "weight", put(0, 0.0)),
    ("nearness-weights", "graph.zarr", "weight", put(0, -1.0)),
    ("nearness-weights", "graph.zarr", "weight", WRONG["longer"]),
    ("table", "gen", "x", WRONG["shorter"]), ("table", "gen", "x", put(5, np.nan)),
    ("table", "gen", "rows/code", put(0, -1)), ("table", "gen", "rows/code", put(0, 2**31 - 1)),
    ("table", "gen", "rows/count", put(0, 2**31 - 1)), ("table", "gen", "rows/dual", put(0, np.nan)),
    ("table", "edges.zarr", "value", put(0, np.nan)), ("table", "edges.zarr", "value", WRONG["shorter"]),
    ("table", "edges.zarr", "labels", WRONG["shorter"]), ("table", "feasible", "x", WRONG["longer"]),
    ("table-limits", "graph.zarr", "upper", put(0, np.nan)), ("table-limits", "graph.zarr", "weight", put(0, -1.0)),
    ("rows", "gen", "y", WRONG["longer"]), ("rows", "gen", "rows/table", put(0, 2**20)),
    ("rows", "gen", "rows/coefficient", put(0, np.nan)), ("rows", "gen", "rows/block_end", put(0, -1)),
    ("rows", "feasible", "x", WRONG["shorter"]), ("rows", "graph.zarr", "start", WRONG["shorter"]),
    ("sets", "gen", "rows/start", put(1, 2**20)),
    ("sets", "gen", "rows/table", put(0, 1)), ("nearness", "edges.zarr", "v", put(0, 2**30)),
    ("clustering", "edges.zarr", "value", put(0, 0.0)), ("linear", "edges.zarr", "value", put(0, 1e-320)),
    ("nearness-weights", "graph.zarr", "weight", put(0, 1e-320)),
    ("table-limits", "graph.zarr", "weight", put(0, 1e-320)),
    ("transport", "gen", "z", WRONG["shorter"]), ("transport", "gen", "rows/added", WRONG["empty"]),
    ("transport-exact", "gen", "rows/count", WRONG["longer"]),
    ("itml", "gen", "bound", lambda values: -values), ("itml", "gen", "bound", put(1, 1e3)),
    ("itml-projections", "gen", "matrix", lambda values: -values), ("itml-projections", "gen", "matrix", put(0, 1e3)),
    ("itml-projections", "gen", "rows/dual", put(0, 1e9)),
    ("itml-projections", "gen", "rows/similar", lambda values: ~values),
    ("nearness", "edges.zarr", "u", WRONG["another type"]), ("nearness", "edges.zarr", "labels", WRONG["longer"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "place", "array", "change"), TABLES, ids=lambda part: str(part).split(" at")[0])
def test_numbers_that_cannot_be_are_refused(made, mutate, tmp_path, name, place, array, change):
    run = made(name, tmp_path / "run.pf")
    group = run / place if place.endswith(".zarr") else next((run / place).iterdir())
    rewrite(group, array, change)
    mutate.reseal(run)
    with pytest.raises(OURS):
        go_on(name, run) if array != "start" or place == "gen" else pf.verify(run)
    with pytest.raises(OURS):
        pf.verify(run, oracle="numba")


@pytest.mark.parametrize("wrong", ["shorter", "longer", "empty"])
def test_potentials_of_another_problem_are_refused(made, mutate, tmp_path, wrong):
    """Early on there are as many as a coarser problem has, which only those who have the masses can tell."""
    run = made("transport-exact", tmp_path / "run.pf")
    rewrite(next((run / "gen").iterdir()), "z", WRONG[wrong])
    mutate.reseal(run)
    for use in (pf.verify, lambda run: go_on("transport-exact", run)):
        with pytest.raises(pf.WorkspaceError, match="plan does not fit the potentials"):
            use(run)


@pytest.mark.parametrize("name", ["clustering", "complete", "linear-external"])
@pytest.mark.parametrize("wrong", ["shorter", "longer", "empty", "another type"])
def test_clusters_of_other_nodes_are_not_shown(made, mutate, tmp_path, name, wrong):
    run = made(name, tmp_path / "run.pf")
    rewrite(next((run / "answer").iterdir()), "labels", WRONG[wrong])
    mutate.reseal(run)
    for use in (pf.open, pf.report, pf.verify, lambda path: pf.report(path, format="html")):
        with pytest.raises(pf.WorkspaceError, match="damaged"):
            use(run)


@pytest.mark.parametrize("wrong", [*WRONG, "of classes that are not there"])
def test_labels_of_rows_in_files_that_cannot_be_are_refused(mutate, tmp_path, wrong):
    import small

    small.CASES["svm-npy"].run(tmp_path)
    run = tmp_path / "run.pf"
    change = WRONG.get(wrong, put(0, 3))
    rewrite(run / "edges.zarr", "code", lambda code: change(code.astype(np.int32)))
    mutate.reseal(run)
    with pytest.raises(OURS):
        pf.resume(run)
    if wrong in ("shorter", "longer"):  # as if the file were another one by now, which verify tells and goes on
        assert pf.verify(run)["rows_read"] == 0
        return
    with pytest.raises(OURS):
        pf.verify(run)


@pytest.mark.parametrize("array", ["lower", "value"])
def test_numbers_that_change_classes_are_refused(mutate, tmp_path, array):
    """Their sum is what it was."""
    import small

    small.CASES["svm-npy"].run(tmp_path, max_iter=2)
    run = tmp_path / "run.pf"
    pf.verify(run)
    rewrite(next((run / "gen").iterdir()), array, np.sort if array == "value" else lambda values: np.sort(values)[::-1])
    mutate.reseal(run)
    with pytest.raises(pf.WorkspaceError, match="class"):
        pf.verify(run)


@pytest.mark.parametrize("name", ["nearness", "clustering"])
def test_an_edge_listed_twice_is_refused(made, mutate, tmp_path, name):
    run = made(name, tmp_path / "run.pf")
    for end in ("u", "v"):
        rewrite(run / "edges.zarr", end, lambda ends: np.append(ends[-1], ends[1:]))
    mutate.reseal(run)
    for use in (pf.resume, pf.verify):
        with pytest.raises(pf.WorkspaceError, match="does not hold the edges"):
            use(run)


@pytest.mark.parametrize("key", [60, 2**63])
def test_increments_of_a_set_that_is_not_there_are_refused(made, mutate, tmp_path, key):
    run = made("sets", tmp_path / "run.pf")
    rewrite(next((run / "gen").iterdir()), "rows/key", put(0, key))
    mutate.reseal(run)
    with pytest.raises(pf.WorkspaceError, match="rows of other sets"):
        go_on("sets", run)


@pytest.mark.parametrize("name", ["nearness", "clustering", "complete", "linear"])
def test_no_run_begins_with_rows_that_are_none(made, mutate, tmp_path, name):
    """The workspace of another run was changed so that its fingerprints fit."""
    run = made(name, tmp_path / "run.pf")
    index = arrays.read_array(next((run / "gen").iterdir()), "rows/index")
    rewrite(next((run / "gen").iterdir()), "rows/index", put(1, index[2]))
    mutate.reseal(run)
    with pytest.raises(pf.WorkspaceError, match=r"run\.pf is damaged: a stored row is not a cycle"):
        CASES[name](warm_start=run)


def test_a_step_of_another_length_is_refused_on_a_complete_graph(made, mutate, tmp_path):
    """Pairs that get a variable later would have another one."""
    run = made("complete-linear", tmp_path / "run.pf")
    change_manifest(run, "problem.options.settings.gamma", ...)
    mutate.reseal(run)
    for use in (pf.verify, pf.resume):
        with pytest.raises(pf.WorkspaceError, match="the step is damaged"):
            use(run)


def test_heat_that_does_not_fit_is_refused(made, mutate, tmp_path, settings):
    settings.searches_on_disk()
    run = tmp_path / "run.pf"
    CASES["external"](workspace=run, max_iter=8)
    group = next((run / "gen").iterdir())
    assert (group / "heat").exists()
    for change in (WRONG["shorter"], put(0, np.nan), put(0, -1.0)):
        before = arrays.read_array(group, "heat")
        rewrite(group, "heat", change)
        mutate.reseal(run)
        with pytest.raises(pf.WorkspaceError, match="heat"):
            pf.resume(run)
        rewrite(group, "heat", lambda _, before=before: before)
    shutil.rmtree(group / "heat")
    change_manifest(run, "plan.stage", "hot")
    mutate.reseal(run)
    with pytest.raises(pf.WorkspaceError, match="heat"):
        pf.resume(run)


# -- what a workspace says of itself ----------------------------------------------------------------------------------

DEEP = json.loads("[" * 200 + "]" * 200)
CHANGES = [
    ("graph.nodes", 2**31 - 1), ("graph.nodes", 10**30), ("graph.nodes", True), ("graph.nodes", -1), ("graph.nodes", 3),
    ("graph.edges", 2**40), ("graph.edges", 0), ("graph.edges", 1.5), ("graph.kind", "signed"), ("graph.kind", None),
    ("graph.source", []), ("graph.source", DEEP), ("problem.name", "clustering"), ("problem.name", "rows"),
    ("problem.name", "unknown"), ("problem.name", []), ("problem.answers", True), ("problem.answers", 1),
    ("problem.options", {}), ("problem.options", []), ("problem.options.tol", ...), ("problem.options.tol", "a"),
    ("problem.options.tol", 0), ("problem.options.tol", -1.0), ("problem.options.tol", None),
    ("problem.options.seed", ...), ("problem.options.seed", -1), ("problem.options.seed", "x"),
    ("problem.options.oracle", "magic"), ("problem.options.oracle", 5), ("problem.options.external", True),
    ("problem.options.external", "no"), ("problem.options.weights", 3), ("problem.options.settings", None),
    ("problem.options.settings", "x"), ("problem.options.settings.stages", []), ("problem.options.settings.stages", 7),
    ("problem.options.settings.stages", [["certify", 0, 0, 10, 0.0]]), ("problem.options.settings.stages", [[]]),
    ("problem.options.settings.stages", [["hot", 0, 0, 1, 0.0], ["hot", 0, 0, 1, 0.0]]), ("closing.objective", ...),
    ("problem.options.settings.stages", [["a", "b", "c", "d", "e"]]), ("problem.options.settings.keep_paths", 0),
    ("problem.options.settings.keep_paths", 10**9), ("problem.options.settings.most_rows", -1),
    ("problem.options.settings.most_rows", ...), ("problem.options.settings.stages", ...),
    ("problem.options.settings.unknown", 1), ("problem.options.settings.engine", "dense"),
    ("problem.options.settings.engine", []), ("plan", {}), ("plan.stage", "nowhere"), ("plan.stage", "hot"),
    ("plan.stage", None), ("plan.wave", -1), ("plan.wave", "x"), ("plan.unknown", 1),
    ("plan.last", {}), ("certificate", {}), ("certificate", {"gap": 1.0}), ("closing", {"violation": "x"}),
    ("closing.violation", ...), ("closing.scale", []), ("closing.worth", [1]), ("closing.feasible", "x"),
    ("objective", None), ("objective", "x"), ("lower_bound", None),
    ("lower_bound", []), ("n_active", -3), ("n_active", 1.5), ("iteration", 2**40), ("iteration", "3"),
    ("history_bytes", 7), ("history_bytes", 2**50), ("generation", 0), ("generation", 99), ("feasible", 77),
    ("answer", 5), ("status", []), ("status", "x"), ("digests", 3), ("digests.groups", []), ("digests.generation", "x"),
    ("digests.groups", {"graph.zarr": 5}), ("version", "2"), ("version", DEEP), ("format", None), ("seal", 4),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), CHANGES, ids=lambda part: "deep" if part is DEEP else str(part)[:40])
def test_a_manifest_that_does_not_fit_is_one_of_our_errors(made, mutate, tmp_path, path, value):
    run = made("nearness", tmp_path / "run.pf")
    change_manifest(run, path, value)
    if path != "seal":
        mutate.reseal(run)
    ended = []
    for use in USES:
        try:
            ended.append(use(run))
        except OURS as error:
            assert str(run) in str(error) or "must be" in str(error)
        except Exception as error:
            pytest.fail(f"{use.__name__}: {type(error).__name__}: {error}")
    if len(ended) == len(USES):
        assert_same_bits(CASES["nearness"](), ended[-1])


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("clustering", "problem.options.gamma", 0), ("clustering", "problem.options.gamma", -1.0),
        ("clustering", "problem.options.gamma", "x"), ("complete", "problem.options.base", 0.5),
        ("complete", "problem.options.base", ...),
        ("complete", "problem.options.external", True), ("external", "problem.options.oracle", "igraph"),
        ("clustering", "facts", {"cost": []}), ("clustering", "facts", None),
        ("clustering", "facts.cost", "x"), ("clustering", "facts.stage", None),
        ("clustering", "facts.cost", DEEP), ("clustering", "facts.cost", ...), ("clustering", "facts.cost", None),
        ("clustering", "facts.lp_lower_bound", None), ("clustering", "problem.answers", False),
        ("clustering", "answer", 0),
        ("clustering", "problem.options.settings.trees", ...), ("clustering", "problem.options.settings.trees", 0),
        ("table", "problem.options.settings.side", 0), ("table", "problem.options.settings.side", 2**20),
        ("table", "problem.options.settings.side", 7), ("table", "problem.options.settings.sweeps", 10**9),
        ("table", "problem.options.settings.engine", "other"), ("table", "graph.nodes", 60_000),
        ("table", "plan.slack", -1),
        ("table", "plan.slow", 1), ("table", "plan.stage", "stream"), ("table", "problem.options.lower", 3),
        ("transport", "problem.options.weight", 0.0), ("transport-exact", "problem.options.weight", -1.0),
        ("svm", "problem.options.C", 0.0), ("svm", "problem.options.C", -1.0),
        ("rows", "plan.task", -1), ("rows", "plan.least", "x"), ("rows", "plan.stage", ""), ("rows", "plan.verdict", 3),
        ("rows", "closing.feasible", ...), ("sets", "closing.feasible", ...), ("rows", "closing.lower_bound", ...),
        ("sets", "plan.since", 0.5), ("sets", "problem.options.seed", ...), ("external", "plan.cold", None),
        ("itml", "closing.worth", ...), ("transport", "certificate.worth", ...),
        ("transport", "certificate.scale", ...),
        ("itml", "certificate.worth", ...), ("transport-exact", "plan.level", 3),
        ("transport-exact", "plan.stage", "newton"),
        ("transport-exact", "plan.stage", "interior"),
    ],
    ids=lambda part: "deep" if part is DEEP else str(part)[:40],
)  # fmt: skip
def test_what_a_family_could_not_have_written_is_refused(made, mutate, tmp_path, name, path, value):
    run = made(name, tmp_path / "run.pf")
    change_manifest(run, path, value)
    mutate.reseal(run)
    for use in (*USES[:-1], lambda path: explain(pf.open(path)), lambda path: go_on(name, path)):
        try:
            use(run)
        except OURS as error:
            assert any(words in str(error) for words in ("damaged", "other options", "no answer", "does not know"))


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("linear", "plan.last", -1e300), ("linear", "plan.worst", -1.0), ("clustering", "plan.cold", -1e-3),
        ("clustering", "plan.rates", {"trees": -1.0}), ("clustering", "plan.rates", {"nowhere": 1.0}),
        ("clustering", "plan.rates", {"trees": "x"}), ("clustering", "plan.work", -1.0),
        ("nearness", "plan.wave", -1), ("linear", "plan.idle", -1), ("linear", "plan.rounded", -1),
        ("table", "plan.slack", -1.0), ("rows", "plan.since", -1), ("transport", "plan.since", -1),
        ("transport-exact", "plan.turns", -1), ("transport-exact", "plan.level", 3),
        ("linear", "problem.options.settings.most_gamma", ...),
    ],
)  # fmt: skip
def test_a_plan_that_no_run_makes_is_refused_by_verify_as_well(made, mutate, tmp_path, name, path, value):
    run = made(name, tmp_path / "run.pf")
    change_manifest(run, path, value)
    mutate.reseal(run)
    for use in (lambda run: pf.verify(run, oracle="numba"), lambda run: go_on(name, run)):
        with pytest.raises(pf.WorkspaceError, match=r"plan|settings"):
            use(run)


def test_a_run_ends_only_as_runs_do(made, mutate, tmp_path):
    run = made("rows", tmp_path / "run.pf")
    change_manifest(run, "plan.verdict", "x")
    mutate.reseal(run)
    with pytest.raises(pf.WorkspaceError, match="verdict"):
        go_on("rows", run)


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 5_000, "9" * 10_000, "NaN", "1e999", "", "\xff", '"\\ud800"', "null", "[1, 2", "\x00"],
    ids=range(11),
)
def test_text_that_is_no_manifest_is_named(made, tmp_path, text):
    run = made("nearness", tmp_path / "run.pf")
    whole = (run / "manifest.json").read_text()
    for content in (text, whole.replace('"running"', text), whole.replace('"iteration_limit"', text)):
        if content == whole:
            continue
        (run / "manifest.json").write_text(content, encoding="latin-1")
        for use in USES:
            with pytest.raises(pf.WorkspaceError, match=r"damaged|not written by"):
                use(run)


LINES = [
    b"[]", b"null", b"{}", b"{", b"\xff", b"[" * 50_000, b'{"iteration": "x"}', b"1e999",
    b'{"iteration": 1, "stage": 3, "lower_bound": 0, "worst": 0, "kept": 0, "seconds": {}}',
    b'{"iteration": 1, "stage": "s", "lower_bound": 0, "worst": 0, "kept": 0, "seconds": 4}',
    b'{"iteration": 1, "stage": "s", "lower_bound": 0, "worst": 0, "kept": 0, "seconds": {"oracle": []}}',
    b'{"iteration": 1, "stage": "s", "lower_bound": 0, "worst": 0, "kept": 0, "seconds": {}, "gap": "x"}',
    b'{"iteration": 1, "stage": "s", "lower_bound": 0, "worst": 0, "kept": 0, "seconds": {}, "ratio": 2, "cost": "x"}',
    b'{"iteration": 1, "stage": "s", "lower_bound": 0, "worst": 0, "kept": 0, "seconds": {}, "ratio": 2}',
    b'{"iteration": 1, "stage": "s", "lower_bound": 0, "worst": 0, "kept": 0, "seconds": {"oracle": NaN}}',
    b'{"iteration": 1, "stage": "s", "lower_bound": 0, "worst": 0, "kept": 0, "seconds": {"oracle": 1e300}}',
]  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_a_history_that_does_not_fit_is_named(made, mutate, tmp_path, line):
    run = made("nearness", tmp_path / "run.pf")
    lines = (run / "history.jsonl").read_bytes().splitlines()
    (run / "history.jsonl").write_bytes(b"\n".join([lines[0], line, lines[2]]) + b"\n")
    change_manifest(run, "history_bytes", (run / "history.jsonl").stat().st_size)
    mutate.reseal(run)
    for use in (pf.open, pf.report, pf.verify, pf.resume):
        with pytest.raises(pf.WorkspaceError, match=r"history.jsonl is damaged.*remove it"):
            use(run)
    (run / "history.jsonl").unlink()
    assert_same_bits(CASES["nearness"](), pf.resume(run))


METADATA = [
    ("shape", [-1]), ("shape", [2**60]), ("shape", []), ("shape", [3, 3]), ("shape", "x"), ("shape", [True]),
    ("shape", ...),
    ("data_type", "float32"), ("data_type", "object"), ("data_type", []), ("data_type", "int32"), ("data_type", None),
    ("chunk_grid", {}), ("chunk_grid.configuration.chunk_shape", [0]), ("chunk_grid.configuration.chunk_shape", [-4]),
    ("chunk_grid.configuration.chunk_shape", [2**40]), ("chunk_grid.configuration.chunk_shape", [1]),
    ("chunk_grid.name", "rectilinear"), ("codecs", []), ("codecs", [{"name": "bytes"}]), ("codecs", [{"name": "gzip"}]),
    ("codecs", "x"), ("codecs", [1, 2]), ("zarr_format", 2), ("node_type", "group"), ("fill_value", "x"),
    ("storage_transformers", [{"name": "x"}]), ("chunk_key_encoding", {"name": "v2"}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), METADATA, ids=str)
@pytest.mark.parametrize("array", ["gen/*.zarr/y", "edges.zarr/value"])
def test_metadata_of_an_array_that_do_not_fit_are_named(made, mutate, tmp_path, array, path, value):
    run = made("nearness", tmp_path / "run.pf")
    (place,) = run.glob(array)
    about = json.loads((place / "zarr.json").read_text())
    changed = copy.deepcopy(about)
    *holders, name = path.split(".")
    holder = changed
    for each in holders:
        holder = holder[each]
    if value is ...:
        del holder[name]
    else:
        holder[name] = value
    (place / "zarr.json").write_text(json.dumps(changed))
    mutate.reseal(run)
    for use in (pf.verify, pf.resume):
        with pytest.raises(pf.WorkspaceError, match=r"damaged|does not hold the edges"):
            use(run)


# -- the parts by themselves ------------------------------------------------------------------------------------------


def test_kinds():
    fits = records.fits
    assert fits(1, int) and fits(1, float) and fits(1.5, float) and fits(None, None) and fits("x", str | None)
    assert not any(
        (fits(True, int), fits(True, float), fits(1.0, int), fits(2**70, int), fits(2**70, float), fits(1, bool))
    )
    assert not any((fits(None, str), fits([], dict), fits("x", int | None)))
    assert fits([], object)


def test_json_that_is_too_deep_or_not_finite_is_named():
    for text in ("[" * 20 + "]" * 20, "[NaN]", "1e999", "[1e999]", "[" * 10**6, "9" * 10**4, b"\xff", "{"):
        with pytest.raises(pf.WorkspaceError, match=r"here is damaged"):
            records.parse_json(text, "here")
    assert records.parse_json('{"a": [1, {"b": 2.5}]}', "here") == {"a": [1, {"b": 2.5}]}
    assert records.parse_json("Infinity", "here", finite=False) == float("inf")


@pytest.mark.slow
def test_a_minute_of_mutations(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    import fuzz

    campaign = fuzz.fuzz(tmp_path, seconds=60, seed=int.from_bytes(b"slow"))
    print(campaign.table(), file=sys.stderr)
    assert not campaign.failures
    assert sum(campaign.counts.values()) > 100
