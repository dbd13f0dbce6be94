"""Parquet files of edges."""

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tests.properties import read, refused


def parquet_file(path, **columns):
    parquet.write_table(pa.table(columns), path)
    return path.read_bytes()


def test_parquet(tmp_path):
    data = parquet_file(tmp_path / "p", time=[9, 9], w=pa.array([0.5, 1.5], pa.float32()), b=[2, 2], a=[1, 30])
    edges, report = read(tmp_path, data, "a.parquet", columns="a,b,w")
    assert (edges, report["format"]) == ({(1, 2): 0.5, (2, 30): 1.5}, "Parquet")
    data = parquet_file(tmp_path / "p", a=["ann", "bob"], b=pa.array(["bob", "cid"]).dictionary_encode())
    assert read(tmp_path, data, "b.parquet")[0] == {("ann", "bob"): 1.0, ("bob", "cid"): 1.0}


def test_bad_parquet(tmp_path):
    good = parquet_file(tmp_path / "p", a=[1, 2, 3], b=[4, 5, 6], w=[1.0, 1.0, 1.0])
    refused(tmp_path, good[:-20], "not a readable Parquet file", name="a.parquet")
    refused(tmp_path, good, "'x'", "missing", "a, b, w", name="a.parquet", columns="a,x")
    for columns, parts in [
        ({"a": [1.5], "b": [4], "w": ["x"]}, ("'a'", "double", "integers or text")),
        ({"a": [1], "b": [4], "w": ["x"]}, ("'w'", "string", "numbers")),
        ({"a": [1]}, ("1 column",)),
        ({"a": pa.array([2**63], pa.uint64()), "b": [4]}, ("'a'", "2**63 - 1")),
        ({"a": ["x", ""], "b": ["y", "z"]}, ("row 2", "two node ids")),
    ]:
        refused(tmp_path, parquet_file(tmp_path / "p", **columns), *parts, name="a.parquet")
    data = parquet_file(tmp_path / "p", a=[1, 2, 3], b=[4, 5, None], w=[1.0, np.inf, 1.0])
    refused(tmp_path, data, "row 2", "inf", "finite", name="a.parquet")
    edges, report = read(tmp_path, data, "b.parquet", bad_lines="skip")
    assert (edges, report["bad_lines_skipped"]) == ({(1, 4): 1.0}, 2)
