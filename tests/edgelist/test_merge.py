"""Repeated pairs are merged in batches, and a query ends when it is left."""

import numpy as np
import pytest

from ooc_pf.edgelist import merge as edgesort
from tests.properties import read


def test_a_pair_over_many_batches(tmp_path, settings):
    settings.small_reads(batch=100)
    values = np.random.default_rng(0).random(5_000).tolist()
    edges, report = read(tmp_path, "\n".join(f"{1 + k % 2} {2 - k % 2} {x!r}" for k, x in enumerate(values)))
    assert edges == {(1, 2): sum(values) / len(values)}
    assert (report["repeated_rows"], report["both_directions"]) == (4_999, 1)


def test_leaving_the_database_stops_its_query(tmp_path):
    """The query would take hours: that the test ends at all is the point."""

    def press_ctrl_c(stage, done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), edgesort.Database(tmp_path, None, press_ctrl_c) as database:
        next(database.stream("SELECT sum(hash(a.range, b.range)) FROM range(1000000) a, range(3000000) b", "sorting"))
