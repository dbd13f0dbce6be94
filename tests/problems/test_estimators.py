"""Clustering and nearness as estimators: what scikit-learn expects of them, and the answers of the functions."""

import subprocess
import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import ooc_pf as pf
from tests.gallery import signed_graph, symmetric

PRECOMPUTED = "the check hands points to an estimator of pairs"
EXPECTED = {
    ("CorrelationClustering", "precomputed"): {"check_clustering": PRECOMPUTED},
    ("CorrelationClustering", "correlation"): {"check_clustering": "two features have correlations of 1 and -1 alone"},
    ("MetricNearness", "precomputed"): {
        "check_positive_only_tag_during_fit": "the check hands over a kernel, whose diagonal is not zero"
    },
}


def expected_failures(model):
    return EXPECTED.get((type(model).__name__, getattr(model, "affinity", None) or model.metric), {})


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:the matrix is symmetric", "ignore:no weight is negative")
@parametrize_with_checks(
    [
        pf.CorrelationClustering("cosine"),
        pf.CorrelationClustering("correlation"),
        pf.CorrelationClustering(),
        pf.MetricNearness("cosine"),
        pf.MetricNearness(),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_finds_what_it_expects(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", ["CorrelationClustering", "MetricNearness"])
def test_without_scikit_learn_the_class_says_what_to_install(name):
    code = f"""
import sys
sys.modules["sklearn"] = sys.modules["sklearn.base"] = None
import ooc_pf as pf
try:
    pf.{name}()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == f"{name} needs scikit-learn 1.6 or newer: pip install 'ooc_pf[learn]'"


# -- clustering -------------------------------------------------------------------------------------------------------


def test_weights_are_clustered_as_the_function_does(rng):
    weights = symmetric(rng, 18)
    plain = pf.correlation_clustering(weights, gamma=2.0, seed=3)
    model = pf.CorrelationClustering(gamma=2.0, random_state=3).fit(weights)
    assert model.labels_.tolist() == plain.labels.tolist()
    assert (model.cost_, model.lower_bound_) == (plain.cost, plain.lp_lower_bound)
    assert model.certified_ratio_ == plain.certified_ratio and model.status_ == plain.status
    assert clone(model).fit_predict(sparse.csr_array(weights)).tolist() == model.labels_.tolist()


def test_a_threshold_decides_what_attracts(rng):
    affinity = symmetric(rng, 15, 0.0, 1.0)
    np.fill_diagonal(affinity, 1.0)
    model = pf.CorrelationClustering(threshold=0.6).fit(affinity)
    plain = pf.correlation_clustering(affinity - 0.6)
    assert model.labels_.tolist() == plain.labels.tolist()
    assert len(set(model.labels_)) > 1


def test_affinities_of_rows(rng):
    X = rng.normal(size=(12, 5))
    cosine = 1.0 - pairwise_distances(X, metric="cosine")
    correlation = pd.DataFrame(X.T).corr().to_numpy()
    for name, matrix in (("cosine", cosine), ("correlation", correlation)):
        expected = pf.correlation_clustering((matrix + matrix.T) / 2.0)
        model = pf.CorrelationClustering(name).fit(X)
        assert model.cost_ == pytest.approx(expected.cost) and model.n_features_in_ == 5
    X[3] = 0.0
    assert pf.CorrelationClustering("cosine").fit_predict(sparse.csr_array(X)).shape == (12,)


def test_graphs_are_taken_as_well(rng):
    u, v, weight = signed_graph(rng, 14, 60)
    graph = nx.Graph()
    graph.add_weighted_edges_from(zip(u.tolist(), v.tolist(), weight.tolist(), strict=True))
    labels = pf.CorrelationClustering().fit_predict(graph)
    assert labels.shape == (14,)
    assert pf.CorrelationClustering().fit((u, v, weight)).cost_ == pytest.approx(
        pf.CorrelationClustering().fit(graph).cost_
    )


def test_it_stands_at_the_end_of_a_pipeline(rng):
    X = np.concatenate([rng.normal(center, 0.1, (10, 2)) for center in ((3.0, 0.0), (-3.0, 1.0))])
    labels = make_pipeline(StandardScaler(), pf.CorrelationClustering("cosine")).fit_predict(X)
    assert len(set(labels[:10])) == len(set(labels[10:])) == 1 and labels[0] != labels[-1]


def test_what_cannot_be_is_named(rng):
    with pytest.raises(pf.InputError, match="affinity must be one of"):
        pf.CorrelationClustering("cosin").fit(symmetric(rng, 5))
    with pytest.warns(ConvergenceWarning, match="iteration_limit"):
        pf.CorrelationClustering(max_iter=1, tol=1e-9).fit(symmetric(rng, 30))


# -- nearness ---------------------------------------------------------------------------------------------------------


def test_a_table_is_repaired_as_the_function_does(rng):
    table = symmetric(rng, 12, 0.2, 3.0)
    model, plain = pf.MetricNearness().fit(table), pf.metric_nearness(table)
    assert np.array_equal(model.distances_, plain.x)
    assert (model.objective_, model.lower_bound_, model.gap_) == (plain.objective, plain.lower_bound, plain.gap)
    assert np.array_equal(clone(model).fit_transform(table), plain.x)


def test_dissimilarities_of_rows_become_a_metric(rng):
    X = rng.uniform(size=(14, 4))
    cosines = pairwise_distances(X, metric="cosine")
    metric = pf.MetricNearness("cosine").fit_transform(X)
    for distances, holds in ((cosines, False), (metric, True)):
        detours = (distances[:, :, None] + distances[None, :, :]).min(axis=1)
        assert (distances <= detours + 1e-9).all() == holds
