"""What must hold, by name, and the processes that see whether it does."""

import json
import multiprocessing
import os
import random
import signal

import numpy as np
import pytest

from ooc_pf.edgelist.convert import convert
from ooc_pf.errors import InputError
from ooc_pf.storage.arrays import read_array, read_labels
from ooc_pf.storage.workspace import Workspace
from tests import naive
from tests.gallery import CASES, by_edge, go_on, write


def assert_is_metric(nodes, u, v, x, tolerance=1e-9):
    """No path is shorter than the edge it bypasses, and no length is negative."""
    assert x.min(initial=0.0) >= 0.0
    dist = naive.graphs.distances(nodes, u, v, x)
    assert np.all(x - dist[u, v] <= tolerance)


def assert_certificate_holds(result, u, v, d, w=None):
    """The bounds are in order, belong to the answer, and follow from the duals alone."""
    w = np.ones(len(u)) if w is None else w
    value = 0.5 * float(w @ (result.x - d) ** 2)
    assert result.objective == pytest.approx(value, rel=1e-12, abs=1e-12)
    assert result.lower_bound <= result.objective + 1e-9 * max(1.0, abs(value))
    load = np.zeros(len(u))
    rows, values = result.duals.rows, result.duals.values
    assert np.all(values > 0)
    for i, z in enumerate(values):
        row = rows.edges[rows.start[i] : rows.start[i + 1]]
        load[row[0]] += z
        load[row[1:]] -= z
    x = np.maximum(d - load / w, 0.0)
    bound = 0.5 * float(w @ (x - d) ** 2) + float(load @ x)
    assert result.lower_bound == pytest.approx(bound, rel=1e-9, abs=1e-9)


def assert_same_bits(one, other):
    """Two runs ended at the same point with the same rows and duals; a table may also be given by edge."""
    assert np.array_equal(_by_edge(one.x), _by_edge(other.x))
    if isinstance(one.duals, dict):
        assert list(one.duals) == list(other.duals)
        assert all(np.array_equal(one.duals[key], other.duals[key]) for key in one.duals)
    else:
        assert np.array_equal(one.duals.rows.start, other.duals.rows.start)
        assert np.array_equal(one.duals.rows.edges, other.duals.rows.edges)
        assert np.array_equal(one.duals.values, other.duals.values)
    assert (one.objective, one.n_iter) == (other.objective, other.n_iter)
    assert one.lower_bound == other.lower_bound


def _by_edge(x):
    x = np.asarray(x)
    return by_edge(x) if x.ndim == 2 else x


def assert_same_run(one, other):
    """Two runs took the same way to the same bits, and made the same of them; times and bytes moved apart."""
    assert_same_bits(one, other)
    assert one.made.keys() == other.made.keys()
    assert all(np.array_equal(one.made[name], other.made[name]) for name in one.made)
    assert one.summary() | {"workspace": None} == other.summary() | {"workspace": None}
    assert [_without_costs(record) for record in one.history] == [_without_costs(record) for record in other.history]


COSTS = ("seconds", "read_bytes", "written_bytes", "relaxed")  # arcs are looked at for as many sources as fit


def _without_costs(record):
    return {name: value for name, value in record.items() if name not in COSTS}


def run_among_kills(name, path, kills, wait=(0.02, 0.5)):
    """Run a case of the gallery on a workspace, and kill it without warning so many times.

    The moments spread over all of a start and the iterations. A run that gets to its end in between starts again.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.gallery"])
    dice, iteration = random.Random(3), 0
    CASES[name](workspace=path, max_iter=0)
    while kills:
        process = context.Process(target=go_on, args=(name, path), kwargs={"workers": 2})
        process.start()
        process.join(dice.uniform(*wait))
        if process.exitcode is None:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            kills -= 1
            before, iteration = iteration, Workspace(path).manifest["iteration"]
            assert iteration >= before
        else:
            assert process.exitcode == 0
            CASES[name](workspace=path, max_iter=0, restart=True)
            iteration = 0


def assert_kkt(result, d, tolerance, w=None):
    """x follows from the duals, and a row with a dual holds with equality."""
    u, v = np.triu_indices(len(d), 1)
    load, x = np.zeros(len(u)), result.x[u, v]
    edges = result.duals.rows.edges.reshape(-1, 3)
    for side, sign in ((0, 1.0), (1, -1.0), (2, -1.0)):
        np.add.at(load, edges[:, side], sign * result.duals.values)
    assert np.abs(x - (d[u, v] - load / (1.0 if w is None else w))).max() <= tolerance
    slack = x[edges[:, 1]] + x[edges[:, 2]] - x[edges[:, 0]]
    assert np.abs(slack).max(initial=0.0) <= tolerance
    assert (result.duals.values > 0).all()


def edges_of(workspace):
    """The edges of a workspace as {(label, label): value}, after checking the promises of the layout."""
    group = workspace / "edges.zarr"
    u, v, value = (read_array(group, name) for name in ("u", "v", "value"))
    labels = read_labels(group).tolist()
    assert (u.dtype, v.dtype, value.dtype) == (np.int32, np.int32, np.float64)
    assert (u < v).all()
    assert labels == sorted(set(labels))
    pairs = list(zip(u.tolist(), v.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    graph = json.loads((workspace / "manifest.json").read_text())["graph"]
    assert (graph["nodes"], graph["edges"]) == (len(labels), len(u))
    return {(labels[a], labels[b]): x for (a, b), x in zip(pairs, value.tolist(), strict=True)}


def read(tmp_path, content, name="links.txt", **options):
    """Convert ``content`` and return (edges, report)."""
    workspace = tmp_path / f"{len(list(tmp_path.iterdir()))}.pf"
    report = convert(write(tmp_path / name, content), workspace, **options)
    assert sorted(entry.name for entry in workspace.iterdir()) == ["edges.zarr", "lock", "manifest.json"]
    return edges_of(workspace), report


def refused(tmp_path, content, *parts, name="links.txt", **options):
    """Check that ``content`` is refused with a message that has all ``parts``, and that nothing is left behind."""
    source = tmp_path / name
    if content is not None:
        write(source, content)
    before = set(tmp_path.iterdir())
    with pytest.raises(InputError) as caught:
        convert(source, tmp_path / "out.pf", **options)
    assert set(tmp_path.iterdir()) == before
    for part in (name, *parts):
        assert part in str(caught.value)
