"""Tasks of a cluster whose results are so large that few may wait, on a stand-in for its client."""

import pytest

from ooc_pf.engine.parallel import run_on_cluster_in_turn
from ooc_pf.errors import ClusterError, SearchStopped


class Client:
    """Runs a task when its result is asked for; counts those whose result nobody has asked for yet."""

    def __init__(self, workers):
        self.workers, self.under_way, self.most = workers, 0, 0

    def nthreads(self):
        return {f"worker {k}": 4 for k in range(self.workers)}

    def submit(self, function, *call, pure, retries):
        assert not pure and retries
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        return function, call

    def gather(self, future):
        self.under_way -= 1
        function, call = future
        return function(*call)


@pytest.mark.parametrize(("workers", "most"), [(0, 1), (1, 1), (3, 3), (50, 10)])
def test_results_come_in_order_and_no_more_wait_than_there_are_workers(workers, most):
    client = Client(workers)
    results = run_on_cluster_in_turn(client, lambda a, b: a - b, ((k, 1) for k in range(10)))
    assert list(results) == list(range(-1, 9))
    assert client.most == most and client.under_way == 0


def test_a_cluster_that_fails_is_said_to_and_a_stop_is_left_as_it_is():
    with pytest.raises(ClusterError, match=r"ZeroDivisionError.*resume it"):
        list(run_on_cluster_in_turn(Client(2), lambda k: 1 / k, [(1,), (0,), (1,)]))

    def stopped():
        yield (1,)
        raise SearchStopped

    with pytest.raises(SearchStopped):
        list(run_on_cluster_in_turn(Client(2), lambda k: k, stopped()))
