"""Graphs come in the forms people have, and answers go back in them."""

import warnings

import duckdb
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import pdist, squareform

import ooc_pf as pf
from ooc_pf.edgelist.tables import read_table
from tests.gallery import groups_of, signed_graph, small_graph, symmetric

NAMES = np.array([f"node {k:02d}" for k in range(60)], object)


@pytest.fixture
def votes(rng):
    """(u, v, weight) of a signed graph in which every node has an edge."""
    u, v, weight = signed_graph(rng, 20, 120)
    assert len(np.unique((u, v))) == 20
    return u, v, weight


def frame_of(u, v, value):
    return pd.DataFrame({"from": NAMES[u], "to": NAMES[v], "km": value}, index=np.arange(len(u)) + 100)


TABLES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "record batches": lambda frame: pa.RecordBatchReader.from_stream(pa.table(frame.reset_index(drop=True))),
    "duckdb": lambda frame: duckdb.connect().from_arrow(pa.table(frame.reset_index(drop=True))),
    "categories": lambda frame: frame.astype({"from": "category", "to": "category"}),
}


# -- lists of edges ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_of_edges_gives_the_distances_of_its_rows(small, kind):
    plain = pf.metric_nearness(small, tol=1e-8)
    result = pf.metric_nearness(TABLES[kind](frame_of(*small)), tol=1e-8)
    assert np.asarray(result.x).tolist() == plain.x.tolist()
    assert result.nodes.tolist() == NAMES.tolist()


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_of_edges_gives_the_cluster_of_each_node(votes, kind):
    plain = pf.correlation_clustering(votes)
    result = pf.correlation_clustering(TABLES[kind](frame_of(*votes)))
    labels = result.labels if isinstance(result.labels, pd.Series) else result.labels["cluster"]
    assert np.asarray(labels).tolist() == plain.labels.tolist()
    assert f"clusters{'':16}{len(groups_of(plain.labels))}" in repr(result)


def test_answers_have_the_type_of_the_table(votes):
    frame = frame_of(*votes)
    result = pf.correlation_clustering(frame)
    assert isinstance(result.x, pd.Series) and result.x.index.equals(frame.index)
    assert result.labels.index.tolist() == NAMES[:20].tolist() and result.labels.name == "cluster"
    result = pf.correlation_clustering(pl.from_pandas(frame))
    assert isinstance(result.x, pl.Series) and result.labels.columns == ["node", "cluster"]
    result = pf.correlation_clustering(pa.table(frame))
    assert isinstance(result.x, pa.Array) and result.labels.column_names == ["node", "cluster"]


def test_columns_are_named_or_found(small):
    u, v, d = small
    frame = pd.DataFrame({"when": 0.0, "one": v, "two": u, "length": d, "width": -d})
    named = read_table(frame, source="one", target="two", weight="width")
    assert (named.u.tolist(), named.value.tolist()) == (v.tolist(), (-d).tolist())
    frame = pd.DataFrame({"timestamp": 0.0, "source": u, "target": v, "length": d})
    assert read_table(frame).value.tolist() == d.tolist()
    assert read_table(frame[["source", "target", "timestamp"]]).value.tolist() == [1.0] * len(u)
    assert read_table(frame, weight="timestamp").value.tolist() == [0.0] * len(u)
    assert read_table(frame, source="target", target="source").u.tolist() == v.tolist()


@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3), st.floats(-1, 1)), min_size=1))
@hypothesis_settings(max_examples=60, deadline=None)
def test_nodes_are_numbered_in_the_order_of_their_labels(rows):
    """Against the textbook way, with sorted sets."""
    a, b, value = map(list, zip(*rows, strict=True))
    read = read_table(pa.table({"source": a, "target": b, "weight": value}))
    labels = sorted({*a, *b}, key=str.encode)
    assert read.labels.tolist() == labels
    assert read.u.tolist() == [labels.index(name) for name in a]
    assert read.v.tolist() == [labels.index(name) for name in b]
    assert read.value.tolist() == value


def test_numbers_and_text_among_ids_are_all_text():
    read = read_table(pa.table({"source": [7, 10], "target": ["x", "7"], "weight": [1, 2]}))
    assert read.labels.tolist() == ["10", "7", "x"]


def test_arrays_of_text_are_labels(small):
    u, v, d = small
    for ends in ((NAMES[u], NAMES[v]), (NAMES[u].astype(str), NAMES[v].astype(str)), (list(NAMES[u]), list(NAMES[v]))):
        result = pf.metric_nearness((*ends, d), tol=1e-8)
        assert result.nodes.tolist() == NAMES.tolist()
        assert result.x.tolist() == pf.metric_nearness(small, tol=1e-8).x.tolist()


def test_a_networkx_graph_gives_dicts(votes):
    graph = nx.Graph()
    graph.add_node(("alone", 0))
    for a, b, weight in zip(*votes, strict=True):
        graph.add_edge(("node", int(a)), ("node", int(b)), weight=weight, other=-weight)
    result = pf.correlation_clustering(graph)
    assert set(result.labels) == set(graph) and set(result.x) == set(graph.edges)
    pairs = zip(*votes, strict=True)
    cut = {(("node", int(a)), ("node", int(b))): w for a, b, w in pairs}
    cost = sum(abs(w) for (a, b), w in cut.items() if (w > 0) != (result.labels[a] == result.labels[b]))
    assert cost == pytest.approx(result.cost)
    assert "clusters" in repr(result)
    other = pf.correlation_clustering(graph, weight="other")
    assert other.cost != result.cost
    distances = pf.metric_nearness(nx.path_graph(4)).x
    assert distances == {(0, 1): 1.0, (1, 2): 1.0, (2, 3): 1.0}


def test_labels_are_kept_in_a_workspace(votes, tmp_path):
    frame = frame_of(*votes)
    first = pf.correlation_clustering(frame, workspace=tmp_path / "run.pf")
    assert pf.open(tmp_path / "run.pf").nodes.tolist() == NAMES[:20].tolist()
    again = pf.correlation_clustering(frame, workspace=tmp_path / "run.pf")
    assert again.labels.equals(first.labels) and again.x.equals(first.x)
    renamed = frame.replace({"from": {"node 00": "another"}, "to": {"node 00": "another"}})
    with pytest.raises(pf.WorkspaceError, match="another graph"):
        pf.correlation_clustering(renamed, workspace=tmp_path / "run.pf")


# -- tables of all pairs ----------------------------------------------------------------------------------------------


def test_a_square_frame_comes_back_as_one(rng, tmp_path):
    table = symmetric(rng, 12, 0.2, 3.0)
    frame = pd.DataFrame(table, NAMES[:12], NAMES[:12])
    result = pf.metric_nearness(frame, workspace=tmp_path / "run.pf", weights=frame + 1.0, lower=0.5 * frame)
    plain = pf.metric_nearness(table, weights=table + 1.0, lower=0.5 * table)
    assert result.x.equals(pd.DataFrame(plain.x, NAMES[:12], NAMES[:12]))
    assert pf.open(tmp_path / "run.pf").nodes.tolist() == NAMES[:12].tolist()
    with pytest.raises(pf.InputError, match="other labels"):
        pf.metric_nearness(frame, weights=frame.iloc[::-1])
    with pytest.raises(pf.InputError, match="another order"):
        pf.metric_nearness(frame.iloc[::-1])


def test_correlations_are_clustered_whatever_the_diagonal(rng):
    points = pd.DataFrame(rng.normal(size=(50, 6)), columns=list("abcdef"))
    points["b"], points["c"] = points["a"] + 0.1 * points["b"], points["a"] + 0.1 * points["c"]
    result = pf.correlation_clustering(points.corr())
    assert result.labels.index.tolist() == list("abcdef")
    assert result.labels["a"] == result.labels["b"] == result.labels["c"]
    loops = sparse.csr_array(points.corr().to_numpy())
    assert pf.correlation_clustering(loops).labels.tolist() == result.labels.tolist()


def test_condensed_distances_come_back_condensed(rng):
    distances = pdist(rng.normal(size=(9, 2))) * rng.uniform(0.3, 2.0, 36)
    result = pf.metric_nearness(distances)
    assert result.x.tolist() == squareform(pf.metric_nearness(squareform(distances)).x).tolist()
    assert pf.metric_nearness(distances, upper=distances).x.shape == (36,)
    with pytest.raises(pf.InputError, match="a vector of 35 numbers is no list of all pairs: 9 points have 36"):
        pf.metric_nearness(distances[:-1])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("unit", [1.0, 1e-30, 1e30])
def test_entries_that_differ_by_rounding_are_averaged_with_a_note(rng, form, unit):
    table = symmetric(rng, 9, 0.2, 3.0) * unit
    bent = table * (1.0 + np.triu(rng.uniform(-1e-15, 1e-15, (9, 9))))
    assert (bent != bent.T).any()
    mean = form((bent + bent.T) / 2.0)
    with pytest.warns(UserWarning, match="symmetric but for rounding"):
        result = pf.metric_nearness(form(bent))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = pf.metric_nearness(mean)
    assert abs(result.x - plain.x).max() == 0.0
    with pytest.raises(pf.InputError, match=r"differ|neither symmetric"):
        pf.metric_nearness(form(table * (1.0 + np.triu(rng.uniform(-1e-9, 1e-9, (9, 9))))))


def test_a_diagonal_of_rounding_is_zero(rng):
    points = rng.normal(size=(8, 30))
    table = 1.0 - np.corrcoef(points)
    np.fill_diagonal(table, 2e-16)
    with pytest.warns(UserWarning, match="rounding"):
        assert not np.diag(pf.metric_nearness(table).x).any()


# -- what is refused --------------------------------------------------------------------------------------------------

FRAME = pd.DataFrame({"from": ["a", "b"], "to": ["b", "c"], "weight": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        (FRAME, {"weight": "wieght"}, r"'wieght' is missing in the table \(did you mean 'weight'\?\)"),
        (FRAME, {"source": "From", "target": "to"}, r"did you mean 'from'"),
        (FRAME, {"source": "from"}, "both source= and target="),
        (FRAME, {"source": "to", "target": "from", "weight": "from"}, "column 'from' has type .*expected numbers"),
        (FRAME.assign(**{"from": [1.5, 2.5]}), {}, "column 'from' has type double, expected integers or text"),
        (FRAME.assign(**{"from": ["a", None]}), {}, r"row 1 \(from 0\) lacks a node id: None to 'c'"),
        (FRAME.assign(**{"from": ["a", 1]}), {}, "column 'from': not all of one kind"),
        (FRAME.assign(to=["b", "b"]), {}, r"edge 1: \(b, b\).*self loop"),
        (FRAME.assign(to=["b", "a"]), {}, r"edges 0 and 1 are both \(a, b\)"),
        (FRAME.assign(weight=[1.0, np.nan]), {}, r"edge 1: \(b, c\) with value nan: not a finite number; remove"),
        (
            FRAME.rename(columns={"from": "x", "to": "y"}).assign(z=1.0),
            {},
            "name them with source=, target= and weight=",
        ),
        (pl.Series([1.0, 2.0]), {}, "Series cannot be read as a table of edges"),
        ((np.array([0]), np.array([1]), np.array([1.0])), {"weight": "w"}, "column 'w' was asked of tuple"),
        ("run.pf", {"source": "a", "target": "b"}, "names its columns when it is converted"),
        (nx.DiGraph([(0, 1)]), {}, "directed"),
        (nx.MultiGraph([(0, 1)]), {}, "multigraph"),
        (
            nx.Graph([(0, 1, {"weight": 1.0}), (1, 2)]),
            {},
            r"edge \(1, 2\) has no attribute 'weight'; give every edge a number",
        ),
        (nx.Graph([(0, 1, {"weight": None})]), {}, r"edge \(0, 1\) has None as 'weight'; give every edge a number"),
        (pd.DataFrame(np.eye(3), list("abc"), list("abd")), {}, "has 'c', 'd' among its lines or its columns, but not"),
        (pd.DataFrame(np.eye(3), list("aab"), list("abc")), {}, "has 'c' among"),
        (nx.Graph([(0, 1, {"weight": 1.0})]), {"weight": "weigth"}, r"'weigth' \(did you mean 'weight'\?\)"),
        (nx.Graph([(1, "1")]), {}, "read the same as text"),
        (pd.DataFrame([[0, "x"], ["x", 0]]), {}, "no number"),
        ((np.array(["a", 1], object), ["b", "c"], [1.0, 2.0]), {}, "not all of one kind"),
    ],
)
def test_bad_input_is_named(table, options, words):
    for problem in (pf.metric_nearness, pf.correlation_clustering):
        with pytest.raises(pf.InputError, match=words):
            problem(table, **options)


def test_text_in_categories_is_text():
    frame = pl.DataFrame({"source": ["b", "a", "b"], "target": ["c", "b", "a"], "weight": [1.0, 1.0, 5.0]}).head(2)
    named = [pl.col(name).cast(pl.Categorical) for name in ("source", "target")]
    for table in (
        frame.with_columns(named),
        frame.with_columns(named).to_pandas(),
        frame.with_columns(named).to_arrow(),
    ):
        assert pf.metric_nearness(table).nodes.tolist() == ["a", "b", "c"]


def test_forms_agree_on_the_small_graph():
    """Numbers of nodes as columns of a frame are labels like any others."""
    u, v, d = small_graph(np.random.default_rng(3))
    frame = pd.DataFrame({"u": u * 10, "v": v * 10, "d": d})
    result = pf.metric_nearness(frame)
    assert result.nodes.tolist() == sorted({*(u * 10), *(v * 10)})
    assert result.x.tolist() == pf.metric_nearness((u, v, d)).x.tolist()


def test_a_graph_without_edges_has_a_cluster_for_each_node():
    """A square table of zeros lists no pair at all."""
    for gamma in (1.0, None):
        result = pf.correlation_clustering(pd.DataFrame(np.zeros((4, 4)), list("abcd"), list("abcd")), gamma=gamma)
        assert result.labels.nunique() == 4
        assert (result.cost, result.lp_lower_bound, result.certified_ratio) == (0.0, 0.0, 1.0)


# -- arrays with labels, regions of pictures --------------------------------------------------------------------------


def test_a_square_data_array_comes_back_as_one(rng):
    xr = pytest.importorskip("xarray")
    table, names = symmetric(rng, 12, 0.2, 3.0), [f"site {k}" for k in range(12)]
    array = xr.DataArray(table, {"from": names, "to": names}, ("from", "to"), name="km")
    plain, result = pf.metric_nearness(table), pf.metric_nearness(array)
    assert isinstance(result.x, xr.DataArray) and result.x.dims == ("from", "to") and result.x.name == "km"
    assert np.array_equal(result.x.values, plain.x) and result.x.coords["to"].values.tolist() == names
    clusters = pf.correlation_clustering(array - float(array.mean())).labels
    assert clusters.dims == ("from",) and clusters.sel({"from": "site 3"}).item() >= 0
    bare = pf.metric_nearness(xr.DataArray(table))
    assert np.array_equal(bare.x.values, plain.x) and bare.nodes is None
    with pytest.raises(pf.InputError, match="other coordinates than its columns"):
        pf.metric_nearness(array.assign_coords(to=names[::-1]))
    with pytest.raises(pf.InputError, match="must be square"):
        pf.metric_nearness(array[:5])


def test_regions_of_a_picture_are_clustered(rng):
    """What scikit-image calls a region adjacency graph is one of networkx."""
    graph = pytest.importorskip("skimage.graph")
    picture = np.zeros((20, 20, 3))
    picture[:, 10:] = 1.0
    regions = graph.rag_mean_color(picture, np.arange(400).reshape(20, 20) // 100 + np.arange(20) // 10 * 4)
    for a, b in regions.edges:
        regions[a][b]["alike"] = 0.5 - regions[a][b]["weight"]
    labels = pf.correlation_clustering(regions, weight="alike").labels
    assert set(labels) == set(regions) and len(set(labels.values())) == 2
    assert len({labels[a] for a in range(4)}) == 1


def test_a_table_that_is_not_there_yet_is_to_be_collected():
    table = pl.DataFrame({"source": [0, 1], "target": [1, 2], "weight": [1.0, -1.0]})
    with pytest.raises(pf.InputError, match=r"LazyFrame .* collect\(\) it first"):
        pf.correlation_clustering(table.lazy())
