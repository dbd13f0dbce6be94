"""What runs on Python objects found, in one file: a plan, the components of a metric, or the multipliers of rows."""

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from scipy import sparse

from ..errors import InputError, WorkspaceError
from ..storage.files import replacing
from ..storage.workspace import Workspace
from ..workspaces import open_workspace

KINDS = {
    "transport": ("plan", "pairs"),
    "itml": ("components", "components"),
}  # what there is, and what rows are called
MOST_FIXED_WIDTH = 1 << 30  # bytes of an array of names


def write_handed(place: Workspace, target: Path, format: str) -> tuple[int, str]:
    """Write the plan as row, column, mass, or the components as row, column, value; returns rows and their name."""
    name, rows = KINDS[place.manifest["graph"]["kind"]]
    found = getattr(open_workspace(place.name), name, None)
    if found is None:
        raise WorkspaceError(
            f"{place.name} has no {name} to export: it does not hold the input of its run; call the function that made "
            "it again, with workspace= and the same arguments"
        )
    with replacing(target, ".partial") as file:
        if name == "plan":
            write_plan(found, file, format)
        else:
            _write_components(found, file, format)
    return (found.nnz if name == "plan" else found.size), rows


def write_plan(plan: Any, file: Path | str | BinaryIO, format: str) -> None:
    """A plan as columns row, column and mass, or as a scipy.sparse matrix."""
    if format == "npz":
        sparse.save_npz(file, plan)
        return
    found = plan.tocoo()
    _write_table(pa.table({"row": found.row, "column": found.col, "mass": found.data}), file, format)


def _write_components(components: np.ndarray, file: Any, format: str) -> None:
    if format == "npz":
        np.savez(file, components=components)
        return
    row, column = np.indices(components.shape)
    _write_table(pa.table({"row": row.ravel(), "column": column.ravel(), "value": components.ravel()}), file, format)


def write_duals(place: Workspace, target: Path, format: str) -> int:
    """Write ``row, multiplier`` of the rows that matter, rows by name if one has any; returns how many those are."""
    duals = open_workspace(place.name).duals
    named = any(isinstance(key, str) for key in duals)
    row = [str(key) for key in duals] if named else np.fromiter(duals, np.uint64, len(duals))
    multiplier = np.fromiter(duals.values(), np.float64, len(duals))
    if format == "npz" and named:
        row = _fixed_width(row)
    with replacing(target, ".partial") as file:
        if format == "npz":
            np.savez(file, row=row, multiplier=multiplier)
        else:
            _write_table(pa.table({"row": row, "multiplier": multiplier}), file, format)
    return len(duals)


def _fixed_width(names: list[str]) -> np.ndarray:
    """Names as an array without objects, in which each takes as much room as the longest one."""
    size = 4 * len(names) * max(map(len, names), default=0)
    if size > MOST_FIXED_WIDTH:
        raise InputError(f"the names of rows would take {size:,} bytes in npz; write .csv or .parquet")
    cut = next((name for name in names if name.endswith("\0")), None)
    if cut is not None:
        raise InputError(f"the name {cut!r} ends with a zero sign, which npz would lose; write .csv or .parquet")
    return np.array(names, np.str_)


def _write_table(table: pa.Table, file: Any, format: str) -> None:
    write = pa.csv.write_csv if format == "csv" else pa.parquet.write_table
    write(table, file)
