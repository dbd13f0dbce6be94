"""Verify proves what a workspace claims: one thing is changed at a time, and it is named, or it changed nothing."""

import copy
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.storage import workspace as ws
from ooc_pf.storage.arrays import read_array, write_array
from tests.gallery import random_graph

rng = np.random.default_rng(11)
U, V = random_graph(rng, 12, 34)
D, W = rng.uniform(0.2, 2.0, len(U)), rng.uniform(0.5, 2.0, len(U))
SIGNED = np.where(rng.random(len(U)) < 0.6, 1.0, -1.0) * W
TABLE = np.triu(rng.uniform(0.2, 3.0, (9, 9)), 1)
TABLE += TABLE.T
A, CENTER = rng.standard_normal((12, 4)), 3.0 * rng.standard_normal(4)
B = A @ rng.standard_normal(4) + 0.1
BALLS = [pf.sets.ball([0.0, 0.0], 1.0), pf.sets.halfspace([1.0, 0.3], 0.2)]

CASES = {
    "nearness": lambda path, **k: pf.metric_nearness((U, V, D), weights=W, workspace=path, **k),
    "external": lambda path, **k: pf.correlation_clustering((U, V, SIGNED), external=True, workspace=path, **k),
    "clustering": lambda path, **k: pf.correlation_clustering((U, V, SIGNED), workspace=path, **k),
    "complete": lambda path, **k: pf.correlation_clustering((U, V, SIGNED), base=-0.1, workspace=path, **k),
    "linear": lambda path, **k: pf.correlation_clustering((U, V, SIGNED), gamma=None, workspace=path, **k),
    "table": lambda path, **k: pf.metric_nearness(TABLE, lower=0.3, upper=2.5, workspace=path, **k),
    "rows": lambda path, **k: pf.project_and_forget(pf.objectives.quadratic(CENTER), (A, B), workspace=path, **k),
    "sets": lambda path, **k: pf.project_onto_sets(pf.objectives.quadratic([3.0, 1.0]), BALLS, workspace=path, **k),
}
# Of `tools/small.py`, where a problem of every family is.
OF_CAMPAIGNS = (
    "clustering-external", "linear-external", "complete-linear", "warm", "svm", "svm-npy", "svm-parquet", "itml",
    "itml-projections", "transport", "transport-exact",
)  # fmt: skip
TOOLS = Path(__file__).parents[1] / "tools"
# What no claim rests on: the names of nodes, and what the search expects of its sources.
HARMLESS = {"edges.zarr/labels", "heat"}


def claims(path):
    """All that a reader is told, as one text."""
    result = pf.open(path)
    duals = result.duals
    held = duals if isinstance(duals, dict) else {"rows": duals.rows.edges, "values": duals.values}
    return json.dumps(plain([result.summary(), result.x, result.n_iter, result.status, result.made, held]))


def plain(value):
    """Nested values as JSON has them; sparse arrays are filled up."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value.toarray().tolist() if hasattr(value, "toarray") else np.asarray(value).tolist()


def leaves(value, at=()):
    """Paths to all numbers, flags and texts of nested dicts and lists."""
    if isinstance(value, dict):
        for name in value:
            yield from leaves(value[name], (*at, name))
    elif isinstance(value, list):
        for number in range(len(value)):
            yield from leaves(value[number], (*at, number))
    elif value is not None:
        yield at


def changed(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return value + "x" if isinstance(value, str) else value * 1.01 + 1.7e-3


def with_change(manifest, at):
    made = copy.deepcopy(manifest)
    holder = made
    for step in at[:-1]:
        holder = holder[step]
    holder[at[-1]] = changed(holder[at[-1]])
    return made


def named_or_harmless(path, before):
    """Whether verify refuses the workspace with one of our errors, or a reader is told the same as before."""
    try:
        pf.verify(path)
    except (pf.WorkspaceError, pf.InputError):
        return True
    return claims(path) == before


@pytest.fixture(params=[*CASES, *OF_CAMPAIGNS])
def solved(request, tmp_path, monkeypatch):
    if request.param in CASES:
        CASES[request.param](tmp_path / "run.pf")
    else:
        monkeypatch.syspath_prepend(TOOLS)
        import small

        small.CASES[request.param].run(tmp_path)
    pf.verify(tmp_path / "run.pf")
    return tmp_path / "run.pf"


@pytest.mark.long
def test_every_entry_of_a_manifest_is_checked(solved):
    before, manifest = claims(solved), json.loads((solved / "manifest.json").read_text())
    for at in leaves(manifest):
        (solved / "manifest.json").write_text(json.dumps(with_change(manifest, at)))
        with pytest.raises((pf.WorkspaceError, pf.InputError)):
            pf.verify(solved)
    (solved / "manifest.json").write_text(json.dumps(manifest))
    assert claims(solved) == before


@pytest.mark.long
def test_every_claim_of_a_manifest_is_recomputed(solved):
    """As above, but whoever changed it has put a fitting seal to it."""
    before, manifest = claims(solved), json.loads((solved / "manifest.json").read_text())
    history = (solved / "history.jsonl").read_bytes()
    missed = []
    for at in leaves(manifest):
        if at in {("seal",), ("problem", "options", "tol")}:
            continue
        made = ws.sealed(with_change(manifest, at), history[: manifest["history_bytes"]])
        (solved / "manifest.json").write_text(json.dumps(made))
        if not named_or_harmless(solved, before):
            missed.append(at)
    assert not missed


@pytest.mark.parametrize("name", CASES)
def test_the_certificate_that_a_run_goes_on_with_is_checked(tmp_path, name):
    """It is of an earlier iterate than the one that is there, and decides when the run ends."""
    path = tmp_path / "run.pf"
    CASES[name](path, max_iter=1)
    manifest, history = json.loads((path / "manifest.json").read_text()), (path / "history.jsonl").read_bytes()
    pf.verify(path)
    for entry in manifest["certificate"] or ():
        made = ws.sealed(with_change(manifest, ("certificate", entry)), history)
        (path / "manifest.json").write_text(json.dumps(made))
        with pytest.raises(pf.WorkspaceError, match="history"):
            pf.verify(path)


@pytest.mark.long
def test_every_array_is_checked(solved):
    before, missed = claims(solved), []
    for file in sorted(solved.rglob("zarr.json")):
        group, name = file.parent.parent, file.parent.name
        if json.loads(file.read_text())["node_type"] != "array":
            continue
        values = read_array(group, name)
        for index in {0, len(values) // 2} if len(values) else ():
            other = values.copy()
            with np.errstate(over="ignore"):
                other[index] = ~other[index] if other.dtype == bool else other[index] * 2 + 1
            shutil.rmtree(file.parent)
            write_array(group, name, other)
            where = f"{group.relative_to(solved)}/{name}"
            if not named_or_harmless(solved, before) and not any(where.endswith(each) for each in HARMLESS):
                missed.append((where, index))
            shutil.rmtree(file.parent)
            write_array(group, name, values)
    assert not missed
    pf.verify(solved)


@pytest.mark.long
def test_every_file_is_checked(solved):
    """A flipped bit, or a missing file, is named or changes nothing that is told."""
    before, missed = claims(solved), []
    for file in sorted(each for each in solved.rglob("*") if each.is_file() and each.name != "lock"):
        content = file.read_bytes()
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        for wrong in (flipped, None):
            file.unlink()
            if wrong is not None:
                file.write_bytes(wrong)
            try:
                fine = named_or_harmless(solved, before)
            except (pf.WorkspaceError, pf.InputError):
                fine = True
            if not fine and not any(each in str(file) for each in HARMLESS):
                missed.append((str(file.relative_to(solved)), wrong is None))
            file.write_bytes(content)
    assert not missed


def test_a_run_may_go_on_without_its_history(tmp_path):
    """Whoever removed it, as a message may advise, has a workspace that verifies when the run has gone on."""
    path = tmp_path / "run.pf"
    pf.metric_nearness((U, V, D), workspace=path, max_iter=2)
    (path / "history.jsonl").unlink()
    result = pf.resume(path)
    assert result.history[0]["iteration"] == 3
    pf.verify(path)


def test_a_workspace_that_was_never_solved_has_nothing_to_verify(tmp_path):
    ws.create_workspace(tmp_path / "new.pf", U, V, D, np.arange(12), kind="distance", source={})
    with pytest.raises(pf.WorkspaceError, match="nothing to verify"):
        pf.verify(tmp_path / "new.pf")


def test_the_same_path_may_hold_something_else_later(tmp_path):
    """Nothing that verify reads is remembered by its path."""
    path = tmp_path / "run.pf"
    pf.metric_nearness((U, V, D), workspace=path)
    pf.verify(path)
    pf.metric_nearness(path, weights=W, restart=True)
    pf.verify(path)
    shutil.rmtree(path)
    pf.metric_nearness((V[:-3] + 40, U[:-3], D[:-3]), workspace=path)
    pf.verify(path)
    group = ws.Workspace(path).feasible
    x = read_array(group, "x")
    shutil.rmtree(group / "x")
    write_array(group, "x", x + np.arange(len(x)))
    with pytest.raises(pf.WorkspaceError):
        pf.verify(path)
