"""Transport from files, on the command line."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import zarr
from scipy import sparse

import ooc_pf as pf
from ooc_pf.commands.cli import main
from tests.gallery import colour_cloud


@pytest.fixture
def files(rng, tmp_path, monkeypatch):
    """Masses, points and costs in files of every kind; and as arrays."""
    monkeypatch.chdir(tmp_path)
    a, b, x, y = np.full(40, 1 / 40), np.full(30, 1 / 30), colour_cloud(rng, 40), colour_cloud(rng, 30)
    cost = ((x[:, None] - y) ** 2).sum(axis=2)
    np.save("a.npy", a)
    pa.parquet.write_table(pa.table({"mass": b}), "b.parquet")
    np.save("x.npy", x)
    pa.parquet.write_table(pa.table(dict(zip("rgb", y.T, strict=True))), "y.parquet")
    zarr.create_array("cost.zarr", shape=cost.shape, chunks=(16, 16), dtype="f8")[:] = cost
    return a, b, x, y


def test_points_and_a_plan_as_a_table(files, capsys):
    a, b, x, y = files
    command = "transport a.npy b.parquet plan.csv --points x.npy y.parquet --gamma 50 --json --quiet"
    assert main(command.split()) == 0
    facts = json.loads(capsys.readouterr().out)
    expected = pf.quadratic_transport(a, b, (x, y), gamma=50.0)
    assert facts["status"] == "converged" and facts["objective"] == expected.objective
    table = pa.csv.read_csv("plan.csv")
    plan = sparse.coo_array((table["mass"], (table["row"], table["column"])), shape=(40, 30)).toarray()
    assert np.allclose(plan, expected.plan.toarray(), rtol=1e-12, atol=0)
    assert main(command.replace("csv", "parquet").split()) == 0
    assert pa.parquet.read_table("plan.parquet").num_rows == expected.plan.nnz


def test_costs_in_a_zarr_array_and_a_run_that_goes_on(files, capsys):
    a, b, x, y = files
    command = "transport a.npy b.parquet plan.npz --cost cost.zarr --reg 0.1 --workspace run.pf --quiet"
    assert main([*command.split(), "--max-iter", "3"]) == 3
    assert main(["solve", "run.pf"]) == 1
    assert "holds a run of transport, not a graph; `ooc-pf resume run.pf` goes on with it" in capsys.readouterr().err
    assert main(command.split()) == 0
    assert "wrote" in capsys.readouterr().out
    expected = pf.quadratic_transport(a, b, (x, y), marginals="exact", reg=0.1)
    apart = np.linalg.norm((sparse.load_npz("plan.npz") - expected.plan).toarray())
    assert 0.1 / 2 * apart**2 <= 4 * 1e-10 * expected.objective  # as near as the gaps of both prove


@pytest.mark.parametrize(
    "command, message",
    [
        ("a.txt b.parquet plan.csv --points x.npy y.parquet --gamma 1", "cannot read numbers from a.txt"),
        ("no.npy b.parquet plan.csv --points x.npy y.parquet --gamma 1", "no.npy is not there"),
        ("a.npy b.parquet plan.txt --points x.npy y.parquet --gamma 1", "name a file ending in .csv, .parquet or .npz"),
        ("a.npy b.parquet plan.csv --points x.npy y.parquet --gamma -1", "gamma must be a positive number, found -1.0"),
        ("a.npy b.parquet plan.csv --cost bad.zarr --gamma 1", "bad.zarr is not a Zarr array"),
        ("a.npy b.parquet plan.csv --points x.npy y.parquet --gamma 0", "gamma must be a positive number, found 0.0"),
        ("a.npy b.parquet plan.csv --points x.npy y.parquet --reg nan", "reg must be a positive number, found nan"),
        ("nan.npy b.parquet plan.csv --points x.npy y.parquet --gamma 1", "a[1] is nan; masses must be finite"),
        (
            "minus.npy b.parquet plan.csv --points x.npy y.parquet --gamma 1",
            "a[1] is -1.0; masses must not be negative",
        ),
        ("zero.npy b.parquet plan.csv --points x.npy y.parquet --gamma 1", "a has no support"),
        ("double.npy b.parquet plan.csv --points x.npy y.parquet --reg 1", "exact marginals need equal masses"),
        ("short.npy b.parquet plan.csv --points x.npy y.parquet --gamma 1", "X has 40 points, but a has 39 masses"),
        ("a.npy b.parquet plan.csv --points y.parquet x.npy --gamma 1", "X has 30 points, but a has 40 masses"),
        ("y.parquet b.parquet plan.csv --points x.npy y.parquet --gamma 1", "a must be a vector of masses"),
    ],
)
def test_what_cannot_be_is_refused(files, tmp_path, command, message, capsys):
    (tmp_path / "bad.zarr").mkdir()
    a = files[0]
    for name, value in (("nan", np.nan), ("minus", -1.0)):
        np.save(f"{name}.npy", np.where(np.arange(len(a)) == 1, value, a))
    for name, masses in (("zero", 0 * a), ("double", 2 * a), ("short", a[1:])):
        np.save(f"{name}.npy", masses)
    assert main(["transport", *command.split()]) == 1
    assert message in capsys.readouterr().err
