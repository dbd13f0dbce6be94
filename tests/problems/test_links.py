"""Record linkage: clusters of records from scored pairs, against all partitions of small instances."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import ooc_pf as pf
from tests.naive.clusters import partitions

RECORDS = 7


@st.composite
def linkages(draw):
    """(u, v, weight, must, cannot) over seven records; the last two do not contradict each other."""
    pairs = [(a, b) for a in range(RECORDS) for b in range(a + 1, RECORDS)]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=3, unique=True))
    weight = draw(
        st.lists(st.sampled_from([-3.0, -1.0, -0.4, 0.3, 1.0, 2.5]), min_size=len(chosen), max_size=len(chosen))
    )
    truth = draw(st.lists(st.integers(0, 3), min_size=RECORDS, max_size=RECORDS))
    known = draw(st.lists(st.sampled_from(pairs), max_size=3, unique=True))
    must = [pair for pair in known if truth[pair[0]] == truth[pair[1]]]
    cannot = [pair for pair in known if truth[pair[0]] != truth[pair[1]]]
    return *map(np.array, zip(*chosen, strict=True)), np.array(weight), must, cannot


def cost_of(labels, u, v, weight):
    return np.abs(weight)[(weight > 0) != (labels[u] == labels[v])].sum()


def least_cost(u, v, weight, must, cannot):
    """Over all partitions that do what they must."""
    return min(
        cost_of(labels, u, v, weight)
        for labels in partitions(RECORDS)
        if all(labels[a] == labels[b] for a, b in must) and all(labels[a] != labels[b] for a, b in cannot)
    )


@given(linkages())
@hypothesis_settings(max_examples=60, deadline=None)
def test_clusters_are_as_good_as_they_are_said_to_be(linkage):
    u, v, weight, must, cannot = linkage
    found = pf.cluster_links((u, v, weight), must_link=must, cannot_link=cannot, records=np.arange(RECORDS))
    best, labels = least_cost(*linkage), found.cluster_id
    assert found.cost == pytest.approx(cost_of(labels, u, v, weight))
    assert found.lower_bound <= best * (1 + 1e-9) + 1e-12 <= found.cost * (1 + 2e-9) + 1e-11
    assert not found.proven.all() or found.cost == pytest.approx(best)
    assert all(labels[a] == labels[b] for a, b in must) and all(labels[a] != labels[b] for a, b in cannot)


def test_nobody_is_joined_without_a_reason():
    """Records that nothing attracts stay alone, whatever else they are compared with."""
    found = pf.cluster_links(([0, 2, 0, 4], [1, 3, 4, 5], [2.0, 1.0, -1.0, -2.0]), records=range(8))
    assert found.cluster_id.tolist() == [0, 0, 1, 1, 2, 3, 4, 5]
    assert (found.cost, found.lower_bound, found.certified_ratio) == (0.0, 0.0, 1.0)
    assert found.clusters["size"].tolist() == [2, 2, 1, 1, 1, 1]
    assert "8 records in 6 clusters, 6 of them proven" in repr(found)


def test_parts_that_are_not_solved_with_all_others_are_solved_alone(rng):
    """With a tolerance that lets the run on all links stop early, the same is proven in the end."""
    u, v = np.triu_indices(12, 1)
    many = 4
    weight = np.where(rng.random(many * len(u)) < 0.6, 1.0, -1.0) * rng.uniform(0.5, 1.5, many * len(u))
    shift = np.repeat(12 * np.arange(many), len(u))
    links = np.tile(u, many) + shift, np.tile(v, many) + shift, weight
    loose, tight = pf.cluster_links(links, tol=0.5), pf.cluster_links(links, tol=1e-6)
    assert loose.cost == pytest.approx(tight.cost, rel=1e-3)
    assert loose.lower_bound == pytest.approx(tight.lower_bound, rel=1e-3)
    ratio = tight.clusters["certified_ratio"]
    assert ((ratio <= 1 + 1e-9) == tight.clusters["proven"]).all() and (ratio >= 1.0).all()


# -- what goes in and comes out ---------------------------------------------------------------------------------------

SPLINK = pd.DataFrame(
    {
        "match_weight": [4.0, -3.0, 5.0],
        "match_probability": [0.94, 0.11, 0.97],
        "unique_id_l": ["a", "a", "c"],
        "unique_id_r": ["b", "c", "d"],
        "gamma_name": [2, 0, 2],
        "anything": [{}, 1, "x"],
    }
)


def test_the_tables_of_splink_are_understood():
    found = pf.cluster_links(SPLINK)
    assert isinstance(found.table, pd.DataFrame)
    assert found.table.to_dict("list") == {
        "record": ["a", "b", "c", "d"],
        "cluster_id": [0, 0, 1, 1],
        "proven": [True] * 4,
    }
    chances = SPLINK.drop(columns="match_weight")
    assert pf.cluster_links(chances).cluster_id.tolist() == [0, 0, 1, 1]
    assert pf.cluster_links(chances, threshold=0.95).cluster_id.tolist() == [0, 1, 2, 2]
    assert pf.cluster_links(SPLINK, weight="gamma_name", threshold=1).cluster_id.tolist() == [0, 0, 1, 1]


def test_records_of_several_data_sets_are_told_apart():
    """Equal ids in two data sets are two records."""
    links = pd.DataFrame(
        {
            "source_dataset_l": ["left", "left"],
            "source_dataset_r": ["right", "right"],
            "unique_id_l": [1, 2],
            "unique_id_r": [2, 1],
            "match_probability": [0.9, 0.2],
        }
    )
    found = pf.cluster_links(links)
    assert found.records.tolist() == ["left-__-1", "left-__-2", "right-__-1", "right-__-2"]
    assert found.cluster_id.tolist() == [0, 1, 2, 0]


def test_tables_of_any_library_come_back_as_they_went_in():
    plain = SPLINK.drop(columns="anything")
    assert isinstance(pf.cluster_links(pl.from_pandas(plain)).clusters, pl.DataFrame)
    assert isinstance(pf.cluster_links(pa.table(plain)).table, pa.Table)
    assert pf.cluster_links((["x"], ["y"], [1.0])).table["cluster_id"].tolist() == [0, 0]


def test_known_pairs_may_come_in_a_table():
    known = pd.DataFrame({"source": ["a"], "target": ["d"]})
    assert pf.cluster_links(SPLINK, must_link=known).cluster_id.tolist() == [0, 0, 0, 0]
    assert pf.cluster_links(SPLINK, cannot_link=known[["target", "source"]].assign(source="c")).cost == 5.0


def test_records_without_a_link_may_be_known_pairs_when_they_are_listed():
    options = {"records": ["eve", "adam", "noah"], "must_link": [("eve", "a"), ("adam", "noah")]}
    found = pf.cluster_links(SPLINK, **options, cannot_link=[("noah", "c")])
    assert found.records.tolist() == ["a", "adam", "b", "c", "d", "eve", "noah"]
    assert found.cluster_id.tolist() == [0, 1, 0, 2, 2, 0, 1]


def test_probabilities_of_one_and_zero_are_very_sure():
    found = pf.cluster_links((["a", "b", "a"], ["b", "c", "c"], [1.0, 0.9, 0.0]), probability=True)
    assert found.cluster_id.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("links", "options", "words"),
    [
        (SPLINK, {"weight": "match_wieght"}, "did you mean 'match_weight'"),
        (SPLINK, {"weight": "match_weight", "probability": "match_probability"}, "not both"),
        (SPLINK, {"probability": "match_weight"}, r"row 0 \(from 0\) has 4.0, which is no probability"),
        (SPLINK.assign(match_weight=[1.0, np.nan, 1.0]), {}, r"row 1 \(from 0\): the link \(a, c\) has a weight"),
        (SPLINK.assign(unique_id_r=["b", "a", "d"]), {}, r"row 1 .*\(a, a\) is with itself"),
        (SPLINK.assign(unique_id_r=["b", "b", "d"]), {}, r"row 0 .*\(a, b\) is listed 2 times"),
        (SPLINK, {"probability": "match_probability", "threshold": 1.0}, "between 0 and 1"),
        (SPLINK, {"must_link": ["ab", "abc"]}, "must_link must be a list of pairs"),
        (SPLINK, {"must_link": [("a", "b")], "cannot_link": [("b", "a")]}, "b and a must not be linked, but"),
        (
            SPLINK,
            {"must_link": [("a", "b"), ("Dd", "a")]},
            r"must_link, pair 1 .*'Dd' is in no link .*mean 'd'.*records=",
        ),
        (SPLINK, {"cannot_link": [("a", "eve")], "records": ["adam"]}, "cannot_link, pair 0 .*'eve' is in no link;"),
        (SPLINK, {"must_link": [("a", None)]}, r"must_link, entry 0 \(from 0\): an id is missing"),
        (SPLINK, {"records": ["a", None]}, r"records, entry 1 \(from 0\): an id is missing"),
        ((["a", None], ["b", "c"], [1.0, 2.0]), {}, r"left ids, entry 1 \(from 0\): an id is missing"),
        (([1.5], [2], [1.0]), {}, "left ids: ids must be integers or text, found double"),
        (SPLINK, {"records": [0.5, 1.0]}, "records: ids must be integers or text, found double"),
        (([1], [2], [1.0]), {"must_link": [(1, 3)]}, "the record 3 is in no link; correct"),
        ((["a"], ["b"], [1.0, 2.0]), {}, "1 left ids, 1 right ids and 2 numbers"),
        ([("a", "b", 1.0)], {}, "links must be a table or arrays"),
    ],
)
def test_bad_links_are_named(links, options, words):
    with pytest.raises(pf.InputError, match=words):
        pf.cluster_links(links, **options)
