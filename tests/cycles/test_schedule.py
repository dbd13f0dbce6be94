"""What a clustering by the linear program does next."""

import numpy as np
import pytest

import ooc_pf as pf
from ooc_pf.cycles import settings as numbers
from ooc_pf.engine.store import read_blocks
from ooc_pf.problems.rounders import RounderInMemory
from ooc_pf.storage.workspace import Workspace
from tests.gallery import signed_graph


@pytest.fixture
def graph():
    return signed_graph(np.random.default_rng(3), 120, 1000, whole=True)


def test_where_the_rows_of_a_pass_run_out_the_packing_goes_on_with_what_is_untouched(graph, settings, tmp_path):
    settings.few_rows_a_pass(30)
    result = pf.correlation_clustering(graph, tol=1e-6, ratio=1.0, max_iter=12, workspace=tmp_path / "all.pf")
    packed = [record for record in result.history if record["stage"] == numbers.DISJOINT]
    assert len(packed) > 2
    assert [record["found"] == 30 for record in packed] == [True] * (len(packed) - 1) + [False]
    run = tmp_path / "packed.pf"
    pf.correlation_clustering(graph, tol=1e-6, ratio=1.0, max_iter=len(packed), workspace=run)
    blocks = list(read_blocks(Workspace(run).generation / "rows", len(graph[0])))
    edges = np.concatenate([block.rows.edges for block in blocks])
    assert sum(len(block.dual) for block in blocks) == sum(record["found"] for record in packed)
    assert len(np.unique(edges)) == len(edges)


def test_clusters_that_do_not_become_better_are_made_less_often(graph, monkeypatch):
    made = []

    def improve(self, point, iteration, stop, *, thoroughly=False):
        made.append(iteration + 1)
        return np.zeros(120, np.int32)

    monkeypatch.setattr(RounderInMemory, "improve", improve)
    pf.correlation_clustering(graph, tol=1e-12, ratio=1.0, max_iter=60)
    first, second, third, *_ = made
    assert (first, second) == (1, 1 + numbers.ROUND_LATER)
    assert third == second + numbers.ROUND_MUCH_LATER * numbers.ROUND_LATER


def test_the_stage_goes_next_that_promises_to_raise_the_bound_most_for_its_work(graph):
    result = pf.correlation_clustering(graph, gamma=1.0, tol=1e-6, max_iter=40)
    stages = {stage.name: stage for stage in numbers.CLUSTERING.stages}
    early = ["triangles", "squares", "trees"]
    arcs = 2 * int(np.sum(graph[2] > 0))
    promised, bound, due = dict.fromkeys(early, np.inf), 0.0, "triangles"
    for record in result.history:
        assert record["stage"] == due
        if due == numbers.CERTIFY:
            break
        searched = numbers.WORK_OF_TREE_ARC * 32 * arcs if due == "trees" else record["relaxed"]
        rise, bound = record["lower_bound"] - bound, record["lower_bound"]
        pays = rise > stages[due].pays * bound
        promised = {name: rate * (1.0 if np.isinf(rate) else numbers.RATE_LEFT) for name, rate in promised.items()}
        work = searched + numbers.WORK_OF_PROJECTION * record["projections"]
        promised[due] = rise / work if pays else 0.0
        due = numbers.CERTIFY if due == "trees" and not pays else max(early, key=promised.get)
    else:
        pytest.fail("the run never came to its complete passes")
    tried = [record["stage"] for record in result.history]
    assert tried[:3] == early
    assert tried[3:].index(numbers.CERTIFY) > len(early)  # and some came again


def test_a_stage_that_pays_no_more_is_left_to_the_others():
    u, v = np.triu_indices(12, 1)
    signs = np.where((u < 6) == (v < 6), 1.0, -1.0)
    result = pf.correlation_clustering((u, v, signs), gamma=1.0, tol=1e-6)
    # Nothing is violated: each stage is tried once, for nothing.
    assert [record["stage"] for record in result.history] == ["triangles", "squares", "trees", numbers.CERTIFY]
    assert result.status == "converged"
