"""The split graph, and the forms in which a graph is accepted."""

import igraph
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import ooc_pf as pf
from ooc_pf.cycles.graph import biconnected_components, build_graph
from ooc_pf.cycles.inputs import read_edges
from tests import naive


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_split_keeps_every_cycle_and_drops_every_bridge(seed):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 10))
    u, v = naive.random_graph(rng, nodes, int(rng.integers(1, 14)))
    component = biconnected_components(u, v, nodes)
    bridges = {e for e in range(len(u)) if naive.is_bridge(nodes, u, v, e)}
    assert set(np.flatnonzero(component < 0).tolist()) == bridges
    for e, path in naive.cycle_rows(nodes, u, v):  # a cycle lies in one component
        assert len({component[e], *component[path]}) == 1
    graph = build_graph(u, v, nodes)
    assert sorted(graph.closer_edge.whole.tolist()) == sorted(set(range(len(u))) - bridges)
    assert sorted(graph.arc_edge.whole.tolist()) == sorted(2 * [e for e in range(len(u)) if e not in bridges])
    tail = np.repeat(np.arange(graph.nodes), np.diff(graph.arc_start))
    source = np.repeat(graph.sources, np.diff(graph.closer_start))
    ends = {e: {int(a), int(b)} for e, a, b in zip(graph.arc_edge.whole, tail, graph.arc_node.whole, strict=True)}
    for e, a, b in zip(graph.closer_edge.whole, source, graph.closer_node.whole, strict=True):
        assert ends[e] == {int(a), int(b)}


def test_two_triangles_at_a_cut_vertex_get_two_copies_of_it():
    u, v = np.array([0, 1, 0, 2, 3, 2]), np.array([1, 2, 2, 3, 4, 4])
    graph = build_graph(u, v, 5)
    assert graph.nodes == 6


def as_forms(matrix):
    u, v = np.triu_indices(len(matrix), 1)
    d = matrix[u, v]
    drawn = igraph.Graph(n=len(matrix), edges=list(zip(u.tolist(), v.tolist(), strict=True)))
    drawn.es["weight"] = d.tolist()
    return {
        "arrays": (u, v, d),
        "reversed": (v, u, d),
        "square": matrix,
        "nested list": matrix.tolist(),
        "symmetric sparse": sparse.csr_array(matrix),
        "upper sparse": sparse.csr_matrix(np.triu(matrix)),
        "igraph": drawn,
    }


def test_every_form_of_input_gives_the_same_answer(rng):
    matrix = np.triu(rng.random((7, 7)) + 0.1, 1)
    matrix += matrix.T
    answers = {}
    for name, form in as_forms(matrix).items():
        result = pf.metric_nearness(form, tol=1e-10)
        x = result.x.toarray() if sparse.issparse(result.x) else np.asarray(result.x)
        answers[name] = x if x.ndim == 2 else read_edges((*np.triu_indices(7, 1), x)).value.whole
    upper = np.triu_indices(7, 1)
    for name, x in answers.items():
        assert (x[upper] if x.ndim == 2 else x) == pytest.approx(answers["arrays"], abs=1e-10), name


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        ((np.array([0, 1]), np.array([1, 2]), np.array([1.0])), "one length"),
        ((np.array([0, 1]), np.array([1, 1]), np.array([1.0, 2.0])), r"edge 1: \(1, 1\).*self loop"),
        ((np.array([0, 1]), np.array([1, 2]), np.array([1.0, np.nan])), r"edge 1: \(1, 2\) with value nan"),
        ((np.array([0, 1]), np.array([1, 0]), np.array([1.0, 2.0])), r"edges 0 and 1 are both \(0, 1\)"),
        ((np.array([0, -1]), np.array([1, 2]), np.array([1.0, 2.0])), "node numbers from 0"),
        ((np.array([0.5]), np.array([1.0]), np.array([1.0])), "integer node numbers"),
        (np.ones((2, 3)), "cannot read a graph"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), r"\(0, 1\) = 1.0 and \(1, 0\) = 2.0 differ"),
        (np.array([[0.0, np.inf], [np.inf, 0.0]]), r"entry \(0, 1\) is inf"),
        (np.array([[1.0, 1.0], [1.0, 0.0]]), "diagonal must be zero"),
        (sparse.csr_array(np.array([[0.0, 1.0], [2.0, 0.0]])), "neither symmetric nor triangular"),
        (sparse.csr_array(np.ones((2, 3))), "must be square"),
        (igraph.Graph(n=2, edges=[(0, 1)], directed=True), "directed"),
        (object(), "cannot read a graph"),
    ],
)
def test_bad_graphs_are_named(graph, words):
    with pytest.raises(pf.InputError, match=words):
        pf.metric_nearness(graph)
