"""The forms in which a graph is accepted, and what is said of those that are not."""

import igraph
import numpy as np
import pytest
from scipy import sparse

import ooc_pf as pf
from ooc_pf.cycles.inputs import read_edges


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


@pytest.mark.long
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


def test_node_numbers_far_beyond_the_edges_are_refused():
    with pytest.raises(pf.InputError, match="number the nodes from 0 on"):
        pf.metric_nearness((np.array([0]), np.array([2**31 - 2]), np.array([1.0])))


def test_true_and_false_are_no_weights_of_a_clustering():
    with pytest.raises(pf.InputError, match="positive for together"):
        pf.correlation_clustering((np.array([0, 1]), np.array([1, 2]), np.array([True, False])))
