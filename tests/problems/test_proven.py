"""How much of a clustering is said to be optimal: what is true, of components by themselves, wherever the state is."""

import json

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ooc_pf as pf
from ooc_pf.commands.cli import main
from ooc_pf.commands.explain import explain
from ooc_pf.cycles.inputs import read_edges
from ooc_pf.problems import clustering, proven
from ooc_pf.storage import workspace as ws
from tests import naive

WEIGHTS = {
    "whole": lambda rng, count: rng.integers(1, 4, count).astype(float),
    "tenths": lambda rng, count: rng.choice([0.1, 0.2, 0.3, 0.7], count),
    "any": lambda rng, count: rng.uniform(0.5, 2.0, count),
    "weak and strong": lambda rng, count: np.where(rng.random(count) < 0.3, 1e9, 1.0) * rng.integers(1, 4, count),
}


def star(leaves, first=0):
    """A centre that attracts leaves which repel each other: the relaxation says half of all leaves, all but one pay."""
    nodes = first + 1 + np.arange(leaves)
    i, j = np.triu_indices(leaves, 1)
    u, v = np.concatenate((np.full(leaves, first), nodes[i])), np.concatenate((nodes, nodes[j]))
    return u, v, np.concatenate((np.ones(leaves), -np.ones(len(i))))


def joined(*graphs):
    return tuple(np.concatenate(parts) for parts in zip(*graphs, strict=True))


def triangle(first):
    """Two that attract and one that repels: it costs one, and the relaxation knows."""
    return first + np.array([0, 1, 0]), first + np.array([1, 2, 2]), np.array([1.0, 1.0, -1.0])


# 0..5 a star that is not proven, 6..8 a triangle that is, 9 alone.
SOME = joined(star(5), triangle(6), (np.array([0, 6]), np.array([9, 9]), np.array([-1.0, -1.0])))


def components(nodes, u, v, weight):
    graph = networkx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from((a, b) for a, b, w in zip(u, v, weight, strict=True) if w > 0)
    return [sorted(part) for part in networkx.connected_components(graph)]


def several_components(seed, weights):
    """A graph of a few groups: attraction inside them, repulsion anywhere."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(3), rng.integers(1, 7, 3))
    u, v = np.triu_indices(len(group), 1)
    within = group[u] == group[v]
    sign = np.where(within & (rng.random(len(u)) < 0.6), 1.0, -1.0)
    chosen = rng.random(len(u)) < np.where(within, 0.9, 0.3)
    chosen[0] = True
    return len(group), u[chosen], v[chosen], (sign * WEIGHTS[weights](rng, len(u)))[chosen]


def solved(graph, **how):
    """The result of a run, and what its proof was made of: point, rows, labels, base, cost, bound."""
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clustering, "prove", lambda *args: said.append(args) or proven.prove(*args))
        result = pf.correlation_clustering(graph, **how, tol=1e-6, ratio=1.0, workers=1)
    return result, said[0]


def others(labels, rng):
    """The labels themselves, and worse ones: a node or two moved, all apart, all together, any."""
    yield labels
    for k in range(12):
        moved = labels.copy()
        moved[rng.integers(len(labels), size=1 + k // 6)] = rng.integers(len(labels) + 1)
        yield moved
    yield from (np.arange(len(labels)), np.zeros_like(labels), rng.integers(3, size=len(labels)))


@given(
    seed=st.integers(0, 2**32 - 1), weights=st.sampled_from(list(WEIGHTS)), gamma=st.sampled_from([None, 1.0]),
    iterations=st.sampled_from([0, 2, 100]),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_no_clustering_of_a_component_said_to_be_proven_is_cheaper(seed, weights, gamma, iterations):
    nodes, u, v, weight = several_components(seed, weights)
    result, (point, rows, labels, base, _, bound) = solved((u, v, weight), gamma=gamma, max_iter=iterations)
    w, rng = naive.clusters.table(nodes, u, v, weight, None)[: len(labels), : len(labels)], np.random.default_rng(seed)
    parts = components(len(labels), u, v, weight)
    least = [naive.clusters.least_cost(w[np.ix_(part, part)]) if len(part) > 1 else 0.0 for part in parts]
    for chosen in others(labels, rng):
        cost = naive.clusters.cost(w, chosen)
        made = proven.prove(point, rows, chosen, base, cost, bound)
        step = proven.common_step(point.program.edges, base)
        mask = proven.proven_by_component(point, rows, chosen, bound.scale, step)
        assert made["optimal"] == (made["proven_nodes"] == len(labels))
        assert made["proven_nodes"] == (len(labels) if made["optimal"] else mask.sum())
        if made["optimal"]:
            assert cost <= sum(least) * (1 + 1e-11) + 1e-14 * np.abs(weight).sum()
        for part, best in zip(parts, least, strict=True):
            own = w[np.ix_(part, part)]
            assert len(set(mask[part])) == 1
            if mask[part[0]]:
                assert naive.clusters.cost(own, chosen[part]) <= best * (1 + 1e-11) + 1e-14 * np.abs(own).sum()
    assert result.proven_nodes == proven.prove(point, rows, labels, base, result.cost, bound)["proven_nodes"]


@pytest.mark.parametrize("gamma", [None, 1.0])
def test_some_components_are_proven_where_the_relaxation_is_weaker_than_others(gamma):
    result = pf.correlation_clustering(SOME, gamma=gamma, tol=1e-6)
    assert (result.cost, result.optimal, result.proven_nodes) == (5.0, False, 4)


def test_all_components_together_prove_what_one_bound_cannot():
    """Each star is half a unit from its bound, so all of them together are further from theirs than costs differ."""
    result = pf.correlation_clustering(joined(*(star(3, 4 * k) for k in range(6))), tol=1e-6)
    assert result.cost - result.lp_lower_bound > 2.0
    assert (result.optimal, result.proven_nodes) == (True, 24)


def test_a_component_with_any_weights_is_proven_if_its_bound_is_its_cost():
    weight = np.array([1.3, 0.7, -0.9, 0.35, 0.77, -0.21])
    u, v, _ = joined(triangle(0), triangle(3))
    result = pf.correlation_clustering(joined((u, v, weight), star(5, 6)), tol=1e-9)
    assert result.proven_nodes == 6


def test_repulsion_in_a_cluster_of_two_components_is_held_against_both():
    u, v, weight = np.array([0, 2, 1, 4]), np.array([1, 3, 2, 5]), np.array([1.0, 1.0, -1.0, 1.0])
    edges = read_edges((u, v, weight), "signed")
    home = np.array([0, 0, 2, 2, 4, 4])
    assert proven._costs(edges, home, np.zeros(6, int)).tolist() == [1.0, 0.0, 1.0, 0.0, 0.0, 0.0]


def test_a_complete_graph_is_proven_as_a_whole_or_not_at_all():
    u, v = np.array([0, 1, 0, 3]), np.array([1, 2, 2, 4])
    assert pf.correlation_clustering((u, v, np.ones(4)), base=-1.0).proven_nodes == 5
    u, v, weight = star(5)
    hub = weight > 0
    result = pf.correlation_clustering((u[hub], v[hub], weight[hub]), base=-1.0, tol=1e-6)
    assert (result.optimal, result.proven_nodes) == (False, 0)


def test_on_disk_as_in_memory_and_verified(tmp_path):
    told = []
    for name, more in (("memory", {}), ("disk", {"workspace": tmp_path / "a"})):
        told.append((name, pf.correlation_clustering(SOME, tol=1e-6, **more).proven_nodes))
    external = pf.correlation_clustering(SOME, tol=1e-6, workspace=tmp_path / "b", external=True)
    assert {count for _, count in told} == {4} == {external.proven_nodes}
    for name in "ab":
        assert pf.verify(tmp_path / name)["proven_nodes"] == 4
        assert pf.open(tmp_path / name).proven_nodes == 4


def rewrite(path, **facts):
    """Change facts of a manifest, None to remove one, under a seal that fits."""
    manifest, history = json.loads((path / "manifest.json").read_text()), (path / "history.jsonl").read_bytes()
    kept = {**manifest["facts"], **facts}
    manifest["facts"] = {name: value for name, value in kept.items() if value is not None or name not in facts}
    made = ws.sealed(manifest, history[: manifest["history_bytes"]])
    (path / "manifest.json").write_text(json.dumps(made))


def test_a_changed_number_of_proven_nodes_is_noticed(tmp_path):
    pf.correlation_clustering(SOME, tol=1e-6, workspace=tmp_path / "run")
    for wrong in (3, 5, 10):
        rewrite(tmp_path / "run", proven_nodes=wrong)
        with pytest.raises(pf.WorkspaceError, match="claims proven nodes"):
            pf.verify(tmp_path / "run")


def test_an_answer_without_the_number_is_judged_as_a_whole(tmp_path, capsys):
    """As earlier releases wrote it, here of stars that only their components prove."""
    path = tmp_path / "run"
    pf.correlation_clustering(joined(*(star(3, 4 * k) for k in range(6))), tol=1e-6, workspace=path)
    rewrite(path, proven_nodes=None, optimal=False)
    assert pf.verify(path)["optimal"] is False
    result = pf.open(path)
    assert result.proven_nodes is None and "proven" not in repr(result)
    assert "nodes   proven" not in explain(result)
    assert main(["status", str(path)]) == 0
    assert "proven optimal" not in capsys.readouterr().out


def test_it_is_told_in_words(tmp_path, capsys):
    path = tmp_path / "run"
    result = pf.correlation_clustering(SOME, tol=1e-6, workspace=path)
    assert "proven optimal          4 of 10 nodes" in repr(result)
    assert "optimal      4 of 10 nodes   proven: no clustering of them costs less" in explain(result)
    assert result.summary()["proven_nodes"] == 4
    for command, words in (("status", "proven optimal: 4 of 10 nodes"), ("report", "| proven nodes | 4 |")):
        assert main([command, str(path)]) == 0
        assert words in capsys.readouterr().out
    assert main(["status", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["proven_nodes"] == 4
