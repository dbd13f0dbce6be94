"""Write the answer of a workspace to one file: edges with their values and x, nodes with their clusters, or weights."""

import itertools
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ..errors import InputError, WorkspaceError
from ..storage.arrays import open_array, read_array
from ..storage.files import local_path, replacing
from ..storage.memory import MIB, parse_memory, refuse_below
from ..storage.workspace import Workspace, read_steadily
from .formats import format_of
from .handed import KINDS, write_duals, write_handed
from .weights import read_weights, write_weights

# Cost only: rows and bytes of text written at once without a budget, and the fewest rows within one.
BATCH = 1 << 20
TEXT = 16 * MIB
LEAST_BATCH = 1 << 13
# Measured bytes: of a row while it is written, of a label, of a byte of text (held, and while it is written), of all
# else, and of the writer of a format. Text in npz files has a fixed width and takes so many bytes a character.
PER_ROW = 256
PER_LABEL = 24
PER_BYTE_HELD = 2
PER_BYTE_WRITTEN = 6
PER_CHARACTER = 4
FIXED = 24 * MIB
WRITER = {"csv": 0, "parquet": 16 * MIB, "npz": 32 * MIB}

METADATA = b"ooc_pf"  # the key of what a Parquet file says about the run
RUN_FACTS = ("status", "iteration", "objective", "lower_bound")

Columns = dict[str, pa.Array]


@dataclass(frozen=True)
class Exported:
    """What was written: how many of what, the status of the run, and a note if it is not finished."""

    rows: int
    what: str
    status: str
    note: str | None


def export(
    workspace: str | Path,
    target: str | Path,
    *,
    format: str | None = None,
    clusters: bool = False,
    duals: bool = False,
    memory: int | str | None = None,
    require_converged: bool = False,
) -> int:
    """Write the answer of a workspace to one file, with the node labels of the input.

    An answer of a run that has not converged is written with a warning, and the file says so where it can: Parquet in
    the metadata of its schema (key ``ooc_pf``), npz in an entry ``note``.

    Parameters
    ----------
    workspace : path or address
    target : path
        The file appears when it is complete; one that is there already is replaced.
    format : {"csv", "parquet", "npz"}, optional
        By default that of the file's ending.
    clusters : bool
        Write ``node, cluster`` of every node; otherwise ``u, v, value, x`` of every edge. Of a support vector machine
        it is ``class, feature, weight``, or arrays ``coef``, ``intercept``, ``classes`` and ``features`` in npz. Of
        transport it is ``row, column, mass`` of the plan, in npz a scipy.sparse array; of metric learning ``row,
        column, value`` of the components, in npz an array ``components``.
    duals : bool
        Of rows of your own: write ``row, multiplier`` of each that matters, by its name or number. They must fit the
        memory, whatever the budget.
    memory : int or str, optional
        A budget. All labels must fit; rows are written in parts that do, except to npz.
    require_converged : bool
        Refuse the answer of a run that has not converged, and write nothing.

    Returns
    -------
    int
        How many rows were written.
    """
    done = write_answer(workspace, target, format, clusters, duals, memory, require_converged)
    if done.note:
        warnings.warn(done.note, stacklevel=2)
    return done.rows


def write_answer(
    workspace: str | Path,
    target: str | Path,
    format: str | None,
    clusters: bool,
    duals: bool,
    memory: int | str | None,
    require_converged: bool,
) -> Exported:
    """`export` without the warning, for those who show the note in their own way."""
    target = local_path(target)
    format = format_of(target, format)
    if not target.parent.is_dir():
        raise InputError(f"{target.parent} is not a directory; make it first")

    def write(place: Workspace) -> Exported:
        kind = place.manifest["graph"]["kind"]
        of_svm, handed = kind == "svm", kind in KINDS
        if duals and kind != "rows":
            raise WorkspaceError(f"{place.name} has no multipliers by row to export; project_and_forget makes them")
        if not (of_svm or handed or duals or place.edges.exists()):
            others = "; `--duals` (duals=True) writes the multipliers of its rows" if kind == "rows" else ""
            whole = f"its answer is pf.open({str(place.name)!r}).x{others}"
            raise WorkspaceError(f"{place.name} holds no graph to export; {whole}")
        outcome, unfinished = place.outcome, _unfinished(place)
        if unfinished and require_converged:
            raise WorkspaceError(f"{unfinished}; nothing was written, as a converged run was asked for")
        if clusters and not (outcome / "labels").exists():
            raise WorkspaceError(f"{place.name} has no clusters to export; they come with `--problem clustering`")
        if of_svm:
            count = write_weights(read_weights(place), target, format, unfinished)
            return Exported(count, "weights", place.manifest["status"], unfinished)
        if duals:
            return Exported(write_duals(place, target, format), "rows", place.manifest["status"], unfinished)
        if handed:
            return Exported(*write_handed(place, target, format), place.manifest["status"], unfinished)
        answer = _Answer(place, clusters, memory, format)
        with replacing(target, ".partial") as file:
            rows = _write(file, answer, format, unfinished)
        return Exported(rows, "nodes" if clusters else "edges", place.manifest["status"], unfinished)

    return read_steadily(workspace, write)


def _unfinished(place: Workspace) -> str | None:
    """What to say of an answer that is not final."""
    status = place.manifest["status"]
    if status in ("converged", "ratio_reached"):
        return None
    told = "running, or stopped without notice" if status == "running" else status.replace("_", " ")
    return (
        f"the run in {place.name} has not converged ({told}, iteration {place.manifest['iteration']}): this is its "
        f"best answer so far; `ooc-pf resume {place.name}` goes on with it"
    )


# -- rows -----------------------------------------------------------------------------------------------------------


class _Answer:
    """The rows to write, in parts that keep within a budget.

    Parameters
    ----------
    place : Workspace
    clusters : bool
        Nodes and their clusters instead of edges.
    memory : int, str or None
        The budget; one that will not do is refused.
    format : str
        To npz all rows are held at once, with labels of a fixed width.
    """

    def __init__(self, place: Workspace, clusters: bool, memory: int | str | None, format: str):
        self.place, self.clusters = place, clusters
        graph = place.manifest["graph"]
        self.count = graph["nodes"] if clusters else open_array(place.edges, "u").shape[0]
        self.is_text = not (place.edges / "labels").exists()
        ends = read_array(place.edges, "label_end") if self.is_text else np.empty(0, np.int64)
        self._sizes, self._nodes_known = np.diff(ends, prepend=0), len(ends) if self.is_text else graph["nodes"]
        self.longest = int(self._sizes.max(initial=0))
        self._batch, self._text = BATCH, min(TEXT, MIB) if format == "npz" else TEXT
        budget = parse_memory(memory)
        if budget is not None:
            self._share_out(budget, memory, graph["nodes"], int(ends[-1]) if len(ends) else 0, format)
        self.labels = _read_labels(place.edges)

    def _share_out(self, budget: int, memory: Any, nodes: int, text: int, format: str) -> None:
        fixed = FIXED + PER_LABEL * nodes + PER_BYTE_HELD * text + WRITER[format]
        columns = 1 if self.clusters else 2  # of labels
        if format == "npz":
            room = PER_CHARACTER * sum(self.widths().values())
            told = f" (npz gives every label the room of the longest, {self.longest} bytes; csv and parquet do not)"
            refuse_below(fixed + self.count * (PER_ROW + room), budget, memory, told if room else "")
            return
        widest = PER_ROW + columns * self.longest * PER_BYTE_WRITTEN
        refuse_below(fixed + max(PER_ROW * LEAST_BATCH, 2 * widest), budget, memory)
        # Of text, half is for the text.
        share = (budget - fixed) // (2 if self.is_text else 1)
        self._batch, self._text = max(1, min(BATCH, share // PER_ROW)), min(TEXT, share // PER_BYTE_WRITTEN)

    def widths(self) -> dict[str, int]:
        """The bytes of the longest label in each column of text."""
        found: dict[str, int] = {}
        for start in range(0, self.count if self.is_text else 0, self._batch):
            for name, ids in self._nodes(start, min(start + self._batch, self.count)).items():
                found[name] = max(found.get(name, 1), int(self._sizes[ids].max(initial=0)))
        return found

    def batches(self) -> Iterator[Columns]:
        """Columns of consecutive rows; at least one batch, be it empty."""
        for start in range(0, max(self.count, 1), self._batch):
            stop = min(start + self._batch, self.count)
            nodes = self._nodes(start, stop)
            cuts = [0, *self._cuts(nodes, stop - start), stop - start]
            for first, last in itertools.pairwise(cuts):
                part = {name: self.pick(ids[first:last]) for name, ids in nodes.items()}
                yield part | self._numbers(start + first, start + last)

    def _nodes(self, start: int, stop: int) -> dict[str, np.ndarray]:
        if self.clusters:
            return {"node": np.arange(start, stop)}
        found = {name: read_array(self.place.edges, name, start, stop) for name in ("u", "v")}
        for name, ids in found.items():
            if len(ids) and not 0 <= ids.min() <= ids.max() < self._nodes_known:
                raise WorkspaceError(f"{self.place.edges / name} is damaged: an edge ends at no node")
        return found

    def _numbers(self, start: int, stop: int) -> Columns:
        if self.clusters:
            return {"cluster": pa.array(read_array(self.place.outcome, "labels", start, stop))}
        value = read_array(self.place.edges, "value", start, stop)
        return {"value": pa.array(value), "x": pa.array(read_array(self.place.outcome, "x", start, stop))}

    def _cuts(self, nodes: dict[str, np.ndarray], rows: int) -> list[int]:
        """Where to cut so many rows so that the text of each part is not too long."""
        if not self.is_text or not rows:
            return []
        ends = np.cumsum(sum(self._sizes[ids] for ids in nodes.values()))
        cuts: list[int] = []
        before = 0
        while before + self._text < ends[-1]:
            # A row that is too long by itself is a part of its own.
            cut = max(int(np.searchsorted(ends, before + self._text, "right")), (cuts[-1] if cuts else 0) + 1)
            if cut == rows:
                break
            cuts.append(cut)
            before = int(ends[cut - 1])
        return cuts

    def pick(self, ids: np.ndarray) -> pa.Array:
        """The labels of nodes."""
        return self.labels.take(pa.array(ids)).cast(pa.string() if self.is_text else pa.int64())


def _read_labels(group: Path) -> pa.Array:
    """The labels as they are stored: integers, or text in one piece with offsets."""
    if (group / "labels").exists():
        return pa.array(read_array(group, "labels"))
    ends, text = read_array(group, "label_end"), read_array(group, "label_text")
    offsets = np.concatenate(([0], ends)).astype(np.int64)
    labels = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(text))
    try:
        labels.validate(full=True)
    except pa.ArrowInvalid as error:
        raise WorkspaceError(f"{group} is damaged: its labels cannot be read ({error})") from None
    return labels


# -- files ----------------------------------------------------------------------------------------------------------


def _write(file: BinaryIO, answer: _Answer, format: str, note: str | None) -> int:
    return _write_npz(file, answer, note) if format == "npz" else _write_table(file, answer, format, note)


def _write_table(file: BinaryIO, answer: _Answer, format: str, note: str | None) -> int:
    open_writer: Callable[..., Any] = pa.csv.CSVWriter if format == "csv" else pa.parquet.ParquetWriter
    facts = {name: answer.place.manifest[name] for name in RUN_FACTS} | ({"note": note} if note else {})
    rows, writer = 0, None
    try:
        for columns in answer.batches():
            table = pa.table(columns)
            writer = writer or open_writer(file, table.schema.with_metadata({METADATA: json.dumps(facts).encode()}))
            writer.write_table(table)
            rows += table.num_rows
            pa.default_memory_pool().release_unused()
    finally:
        if writer is not None:
            writer.close()
    return rows


def _write_npz(file: BinaryIO, answer: _Answer, note: str | None) -> int:
    whole: dict[str, np.ndarray] = {}
    start = 0
    # Text of fixed width, so that the file can be read without pickle. No label has more characters than bytes.
    kinds = {name: f"<U{width}" for name, width in answer.widths().items()}
    for columns in answer.batches():
        count = len(next(iter(columns.values())))
        for name, values in columns.items():
            if name not in whole:
                whole[name] = np.empty(answer.count, kinds.get(name) or values.type.to_pandas_dtype())
            whole[name][start : start + count] = values.to_numpy(zero_copy_only=False)
        start += count
    if note:
        whole["note"] = np.array(note)
    np.savez(file, **whole)
    return start
