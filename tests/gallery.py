"""The graphs, tables, row problems and edge files that many tests use."""

import gzip
import itertools

import numpy as np
import pyarrow as pa
from pyarrow import csv

import ooc_pf as pf
from ooc_pf.engine.limits import Limits
from ooc_pf.engine.place import open_result
from ooc_pf.itml.inputs import all_pairs_task
from ooc_pf.itml.solve import solve_task
from ooc_pf.problems.svm import fit_newton
from ooc_pf.storage.workspace import Workspace
from ooc_pf.svm.inputs import read_table
from ooc_pf.svm.program import Program
from ooc_pf.transport.family import TransportData
from ooc_pf.transport.inputs import read_task
from ooc_pf.transport.solve import solve_data
from ooc_pf.workspaces import family_of

# -- graphs -----------------------------------------------------------------------------------------------------------


def random_graph(rng, nodes, edges):
    """A random simple graph, not necessarily connected, as (u, v) with u < v."""
    pairs = np.array(list(itertools.combinations(range(nodes), 2)))
    pick = rng.choice(len(pairs), size=min(edges, len(pairs)), replace=False)
    return pairs[pick, 0], pairs[pick, 1]


def small_graph(rng):
    """(u, v, d): 60 nodes, 240 edges, random distances."""
    u, v = random_graph(rng, 60, 240)
    return u, v, rng.random(len(u))


def random_signed(rng, nodes, edges, mean=0.2):
    """(u, v, weight): normal weights, somewhat more attraction than repulsion."""
    u, v = random_graph(rng, nodes, edges)
    return u, v, rng.normal(mean, 1.0, len(u))


def signed_graph(rng, nodes, edges, *, whole=False):
    """(u, v, weight): weights +-1 or continuous, never zero."""
    u, v = random_graph(rng, nodes, edges)
    weight = rng.choice([-1.0, 1.0], len(u)) * (1.0 if whole else rng.uniform(0.1, 1.0, len(u)))
    return u, v, weight


def communities(rng, nodes, degree, *, signed):
    """A graph of groups of 64 with most edges inside, and the others to groups nearby: something like locality."""
    u = np.repeat(np.arange(nodes), degree // 2)
    inside = rng.random(len(u)) < 0.8
    v = np.where(inside, u // 64 * 64 + rng.integers(0, 64, len(u)), u + rng.integers(-256, 257, len(u)))
    fine = (v >= 0) & (v < nodes) & (v != u)
    u, v, inside = u[fine], v[fine], inside[fine]
    _, first = np.unique(np.minimum(u, v) * nodes + np.maximum(u, v), return_index=True)
    u, v, inside = np.minimum(u, v)[first], np.maximum(u, v)[first], inside[first]
    size = rng.uniform(0.5, 1.5, len(u))
    return u, v, np.where(inside ^ (rng.random(len(u)) < 0.1), size, -size) if signed else size


def social_network(rng, nodes, edges):
    """(u, v, weight) of about so many edges: hubs, groups of uneven size, ratings up to 10, most of them positive."""
    fame = rng.permutation((1.0 + np.arange(nodes)) ** -0.65)
    sizes = np.minimum(3 + rng.pareto(1.2, nodes) * 8, nodes / 20).astype(int)
    group = np.repeat(np.arange(nodes), sizes)[:nodes]
    u = rng.choice(nodes, 2 * edges, p=fame / fame.sum())
    near = np.searchsorted(group, group[u]) + (rng.random(len(u)) * np.bincount(group)[group[u]]).astype(int)
    v = np.where(rng.random(len(u)) < 0.7, near, rng.choice(nodes, len(u), p=fame / fame.sum()))
    pairs = np.unique(np.sort(np.column_stack((u, v))[u != v], axis=1), axis=0)
    name = rng.permutation(nodes)
    agree = rng.random(len(pairs)) < np.where(group[pairs[:, 0]] == group[pairs[:, 1]], 0.9, 0.25)
    weight = np.where(agree, 1.0, -1.0) * np.minimum(rng.geometric(0.5, len(pairs)), 10)
    u, v = np.sort(name[pairs], axis=1).T
    kept = np.lexsort((v, u))[np.sort(rng.permutation(len(u))[:edges])]
    return u[kept], v[kept], weight[kept]


def attractive_groups(rng, nodes=45):
    """(u, v, weight) of three groups, dense inside, where every edge attracts: for a base that repels."""
    group = np.arange(nodes) % 3
    u, v = np.triu_indices(nodes, 1)
    linked = rng.random(len(u)) < np.where(group[u] == group[v], 0.6, 0.08)
    return u[linked], v[linked], rng.uniform(0.5, 1.5, linked.sum())


def groups_of(labels):
    """Clusters as a set of sets of nodes."""
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


# -- tables -----------------------------------------------------------------------------------------------------------

LIMITED = {"lower": 0.2, "upper": 1.5}


def symmetric(rng, nodes, low=-1.0, high=2.0):
    """A symmetric array with zeros on the diagonal."""
    upper = np.triu(rng.uniform(low, high, (nodes, nodes)), 1)
    return upper + upper.T


def by_edge(matrix):
    """The upper part of a square array, in the order of the edges."""
    return matrix[np.triu_indices(len(matrix), 1)]


# -- rows -------------------------------------------------------------------------------------------------------------


def feasible_rows(rng):
    """(A, b, center): 300 rows over 15 variables that have a point in common, which the center is not."""
    A = rng.normal(size=(300, 15)) * (rng.random((300, 15)) < 0.5)
    inside = rng.uniform(0.2, 0.8, 15)
    return A, A @ inside + 0.3 * rng.random(300), rng.uniform(0.05, 0.95, 15)


def mild_rows(rng):
    """(A, b, center): few active rows that are far from parallel: what the truly stochastic variant solves well."""
    A = rng.normal(size=(200, 40))
    A /= np.linalg.norm(A, axis=1)[:, None]
    center = rng.uniform(0.3, 0.7, 40)
    return A, A @ center + np.where(np.arange(200) % 20 == 0, -0.05, 0.2), center


def labelled_rows(rng, rows, columns, classes=2):
    """(X, y): normal rows off the origin, labelled 0, 1 ... by a noisy projection."""
    X = rng.normal(size=(rows, columns)) + 0.3
    score = X @ rng.normal(size=columns) + 0.5 * rng.normal(size=rows)
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


# -- transport --------------------------------------------------------------------------------------------------------


def normal_masses(n):
    """The paper's masses on a line: normal densities around -15 and 15, variance 10, and the points."""
    x = np.linspace(-20.0, 20.0, n)
    a, b = np.exp(-((x + 15.0) ** 2) / 20.0), np.exp(-((x - 15.0) ** 2) / 20.0)
    return a / a.sum(), b / b.sum(), x


def colour_cloud(rng, n, lines=8):
    """Points of the unit cube near a few lines, as the colours of a picture are."""
    start, end = rng.random((2, lines, 3))
    line, part = rng.integers(0, lines, n), rng.random((n, 1))
    return np.clip(start[line] * (1.0 - part) + end[line] * part + 0.03 * rng.normal(size=(n, 3)), 0.0, 1.0)


# -- a problem of every kind, small enough to be run in many ways ------------------------------------------------------


def _nearness(graph, **options):
    return lambda **how: pf.metric_nearness(graph, **options, **how)


def _clustering(graph, **options):
    return lambda **how: pf.correlation_clustering(graph, **options, **how)


def _rows(objective, oracle, **options):
    return lambda **how: pf.project_and_forget(objective, oracle, **options, **how)


def _svm(X, y):
    """Three classes with an intercept; the rows come in blocks, so that there are many tasks."""

    def run(**how):
        table = read_table(np.array_split(X, 12))
        program = Program(table, y.astype(np.int8), np.empty(0), np.ones(3), (0, 1, 2), 10.0, True)
        return fit_newton(program, tol=1e-10, seed=1, **how)

    return run


def _transport(rng, n, marginals, weight):
    """Between two clouds; with exact marginals from coarser ones."""
    a, b, x, y = np.full(n, 1.0 / n), rng.random(n) + 0.1, colour_cloud(rng, n), colour_cloud(rng, n)
    data = TransportData(read_task(a, b / b.sum(), (x, y), "sqeuclidean"), marginals, weight)
    return lambda **how: solve_data(data, 1e-9, Limits(**how))


def _itml(rng, method):
    """All pairs of points of three classes, a sample of which comes first."""
    classes = rng.integers(0, 3, 60)
    points = rng.normal(size=(60, 4)) * [1.0, 3.0, 0.3, 1.0] + np.outer(classes, [1.0, 0.0, 0.2, 0.0])
    tol = 1e-13 if method == "newton" else 1e-5

    def run(**how):
        task = all_pairs_task(points, classes, 50.0, "identity", True, None)
        return solve_task(task, method, tol, Limits(**how))

    return run


def _cases():
    """(name, function): calling it with ``workspace``, ``memory``, ``workers``, ``max_iter`` ... solves the problem.

    The archive holds runs of these: change none of them, add others.
    """
    rng = np.random.default_rng(7)
    distances = small_graph(rng)
    yield "nearness", _nearness(distances, tol=1e-6)
    yield "nearness-weights", _nearness(distances, tol=1e-6, weights=rng.uniform(0.5, 2.0, 240))
    yield "nearness-external", _nearness(distances, tol=1e-6, external=True)
    yield "clustering", _clustering(random_signed(np.random.default_rng(8), 60, 300), gamma=1.0, tol=1e-5)
    yield "external", _clustering(random_signed(np.random.default_rng(9), 40, 140), gamma=1.0, tol=1e-2, external=True)
    groups = attractive_groups(np.random.default_rng(10), 36)
    yield "complete", _clustering(groups, base=-0.4, gamma=1.0, tol=1e-3)
    yield "complete-linear", _clustering(groups, base=-0.15, gamma=None, tol=1e-2, ratio=1.0)
    yield "linear", _clustering(random_signed(np.random.default_rng(11), 40, 120), gamma=None, tol=1e-2)
    mixed = random_signed(np.random.default_rng(21), 40, 160)
    yield "linear-exact", _clustering(mixed, gamma=None, tol=1e-3, ratio=1.0)
    yield "linear-external", _clustering(mixed, gamma=None, tol=1e-3, external=True)
    rng = np.random.default_rng(12)
    square = symmetric(rng, 30, 0.2, 3.0)
    yield "table", _nearness(square, tol=1e-8)
    yield "table-limits", _nearness(square, tol=1e-8, weights=rng.uniform(0.5, 2.0, 435), **LIMITED)
    A, b, center = feasible_rows(np.random.default_rng(13))
    yield "rows", _rows(pf.objectives.quadratic(center), (A, b), tol=1e-6)
    yield "rows-entropy", _rows(pf.objectives.entropy(center), (A, b), tol=1e-10, forget="never")
    A, b, center = mild_rows(np.random.default_rng(14))
    some = pf.oracles.random_subset(A, b, 100)
    yield "rows-stochastic", _rows(pf.objectives.fermi_dirac(center), some, tol=1e-3, forget="all", seed=3)
    rng = np.random.default_rng(15)
    balls = [pf.sets.ball(0.3 * a, 1.5) for a in rng.normal(size=(60, 8))]
    point = pf.objectives.quadratic(3 * rng.normal(size=8))
    yield "sets", lambda **how: pf.project_onto_sets(point, balls, tol=1e-8, **how)
    yield "svm", _svm(*labelled_rows(np.random.default_rng(16), 1500, 6, 3))
    yield "itml", _itml(np.random.default_rng(19), "newton")
    yield "itml-projections", _itml(np.random.default_rng(19), "project_and_forget")
    yield "transport", _transport(np.random.default_rng(17), 400, "soft", 100.0)
    yield "transport-exact", _transport(np.random.default_rng(18), 400, "exact", 0.02)


CASES = dict(_cases())
ON_DISK = ("nearness-external", "external", "linear-external")  # laid out for disk: these need a workspace
HELD = ("transport", "transport-exact", "itml", "itml-projections")  # given by objects that a workspace holds
OWN = ("rows", "rows-entropy", "rows-stochastic", "sets", "svm")  # by such as it does not hold


def go_on(name, workspace, **how):
    """Go on with the run of a case in a workspace: by what is stored, or called again where that is not all."""
    return CASES[name](workspace=workspace, **how) if name in (*OWN, *HELD) else pf.resume(workspace, **how)


def opened(name, path):
    """The result in a workspace, as the function of its case gives it: of input that is held without its form."""
    workspace = Workspace(path)
    return open_result(family_of(workspace), workspace) if name in HELD else pf.open(path)


# -- files of edges ---------------------------------------------------------------------------------------------------

GOOD = "# head\n1 2 0.5\n\n2 3 1.5\n"


def write(path, content):
    """Write text or bytes, compressed if the name says so; returns the path."""
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def random_links(path, rows):
    """Write many random pairs of numbers below a header; returns the path."""
    pairs = np.random.default_rng(0).integers(0, rows, (rows, 2))
    csv.write_csv(pa.table(list(pairs.T), names=["from", "to"]), path)
    return path
