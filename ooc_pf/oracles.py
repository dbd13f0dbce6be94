"""Where general rows come from: tables in memory or on disk, random parts of them, cycles of a graph, functions.

An oracle hands out tasks, each of which returns a block of rows when called. The rows need not be violated: whoever
asked measures them. Tasks run side by side, so what they call must allow that.
"""

import hashlib
import mmap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from .cycles import settings
from .cycles.graph import build_graph
from .cycles.inputs import read_edges
from .cycles.search import Frozen, NumbaOracle, SearchRules, all_sources, cut
from .engine.names import LONGEST, NAMED, Names
from .engine.rows import Rows
from .errors import InputError
from .kernels.paths import UNLIMITED
from .storage.vectors import Vector

TABLE_ENTRIES = 1 << 17  # shapes the bits: entries of a table read at a time
CYCLE_ROUNDING = 1e-15  # of the longest edge: smaller violations of a cycle are rounding
Task = Callable[[], Rows]
Tasks = Callable[[np.ndarray, np.random.Generator], Iterable[Task]]


@dataclass(frozen=True)
class Oracle:
    """Where rows come from.

    Attributes
    ----------
    name : str
        What messages and manifests call it.
    tasks : (x, random generator) -> iterable of callables
        Each returns a block of rows.
    complete : bool
        Whether x is feasible if none of these rows is violated (the paper's Property 1).
    check : like tasks, or None
        For an oracle that is not complete (Property 2): one that is, only measured.
    draws : int
        How many draws of an incomplete oracle make a pass.
    variables : int or None
        How many variables the rows are over, where that is known.
    fingerprint : () -> str, or None
        Recognises the same rows later, where they are a table. It reads all of them.
    """

    name: str
    tasks: Tasks
    complete: bool = True
    check: Tasks | None = None
    draws: int = 1
    variables: int | None = None
    fingerprint: Callable[[], str] | None = None


def read_oracle(oracle: Any) -> Oracle:
    """An oracle of what a user may give: an oracle, a pair ``(A, b)``, a function, or an iterable of blocks."""
    if isinstance(oracle, Oracle):
        return oracle
    if callable(oracle):
        return from_function(oracle)
    if isinstance(oracle, tuple) and len(oracle) in (2, 3) and np.ndim(oracle[1]) <= 1:
        return explicit(*oracle[:2], equality=oracle[2] if len(oracle) == 3 else False)
    return from_blocks(oracle)


# -- blocks of rows -------------------------------------------------------------------------------------------------


def read_block(block: Any) -> Rows:
    """Rows of ``(A, b[, equality[, keys]])``, or of a list of ``(indices, coefficients, rhs[, equality[, key]])``.

    Numbers are checked by whoever measures the rows.
    """
    if isinstance(block, Rows):
        return block
    if isinstance(block, tuple) and len(block) in (2, 3, 4):
        table = read_table(*block[:3])
        rows = table.read(0, table.count, keyed=False)
        return _with_keys(rows, list(block[3])) if len(block) == 4 else rows
    if isinstance(block, list):
        return _rows_of_list(block)
    raise InputError(
        f"an oracle returned {type(block).__name__}; it must return (A, b), (A, b, equality), (A, b, equality, keys), "
        "or a list of rows (indices, coefficients, rhs), perhaps with equality, and then a key"
    )


def _rows_of_list(rows: list[Any]) -> Rows:
    index, coefficient, rhs, equality = [], [], [], []
    for number, row in enumerate(rows):
        try:
            at, a = np.atleast_1d(np.asarray(row[0])), np.atleast_1d(np.asarray(row[1], np.float64))
            right, equal = float(row[2]), bool(row[3]) if len(row) > 3 else False
            whole = at.dtype.kind in "iu" or not len(at)
        except (TypeError, ValueError, IndexError, KeyError):
            whole = False
        if not whole:
            raise InputError(f"row {number} of those the oracle returned is not (indices, coefficients, rhs): {row!r}")
        if at.ndim != 1 or at.shape != a.shape:
            raise InputError(
                f"row {number} of those the oracle returned has indices {at.shape}, coefficients {a.shape}"
            )
        index.append(at.astype(np.int64))
        coefficient.append(a)
        rhs.append(right)
        equality.append(equal)
    start = np.cumsum([0, *map(len, index)], dtype=np.int64)
    joined = np.concatenate(index) if index else np.empty(0, np.int64)
    values = np.concatenate(coefficient) if index else np.empty(0)
    found = Rows(start, joined, values, np.array(rhs, np.float64), np.array(equality, bool))
    return _with_keys(found, [row[4] if len(row) > 4 else None for row in rows])


def _with_keys(rows: Rows, keys: list[Any]) -> Rows:
    """The rows under the keys that were given; a row whose key is None goes by its content."""
    given = [key for key in keys if key is not None]
    if len(keys) != len(rows):
        raise InputError(f"the oracle returned {len(rows)} rows and {len(keys)} keys")
    for key in given:
        _check_key(key)
    if len(set(given)) < len(given):
        twice = next(key for key in given if given.count(key) > 1)
        raise InputError(
            f"the oracle gave the key {twice!r} to two rows; a key stands for one row, whenever it is given"
        )
    if not given:
        return rows
    numbers = np.array([isinstance(key, Integral) for key in keys])
    found = rows.keys().copy()
    found[numbers] = np.array([key for key in given if isinstance(key, Integral)], np.uint64)
    if numbers.sum() == len(given):
        return replace(rows, key=found)
    names = Names.of([str(key) if isinstance(key, str) else "" for key in keys])
    return replace(rows, key=names.keyed(found), names=names)


def _check_key(key: Any) -> None:
    """Refuse what is neither a whole number nor a name."""
    if isinstance(key, str):
        try:
            size = len(key.encode())
        except UnicodeEncodeError:
            raise InputError(f"the key {key!r} is no text: it holds half of a character of two") from None
        if not 1 <= size <= LONGEST:
            raise InputError(f"a key of text must have 1 to {LONGEST} bytes, found {size} ({key[:20]!r})")
    elif not isinstance(key, Integral) or not 0 <= key < NAMED:
        raise InputError(f"the key of a row must be text or a whole number from 0 to 2^63 - 1, found {key!r}")


@dataclass(frozen=True)
class Table:
    """Rows in arrays that are read a part at a time: ``slab(first, last)`` gives start, index and coefficients."""

    slab: Callable[[int, int], tuple[np.ndarray, np.ndarray, np.ndarray]]
    b: Any
    equality: Any
    count: int
    variables: int | None
    stride: int

    def read(self, first: int, last: int, *, keyed: bool = True) -> Rows:
        start, index, coefficient = self.slab(first, last)
        rhs = np.array(self.b[first:last], np.float64)
        _release(self.b)
        one = isinstance(self.equality, bool)
        equality = np.full(last - first, self.equality) if one else np.asarray(self.equality[first:last], bool)
        key = np.arange(first, last, dtype=np.uint64) if keyed else None
        return Rows(start, index, coefficient, rhs, equality, key)

    def fingerprint(self) -> str:
        """Recognises the same numbers later, however they are held."""
        total = hashlib.blake2b(digest_size=16)
        for part in self.parts():
            rows = self.read(*part, keyed=False)
            entries = np.diff(rows.start), rows.edges.astype(np.int64), rows.coefficient, rows.rhs, rows.equality
            for values in entries:
                total.update(np.ascontiguousarray(values).tobytes())
        return total.hexdigest()

    def parts(self) -> list[tuple[int, int]]:
        return [(first, min(first + self.stride, self.count)) for first in range(0, self.count, self.stride)]


def read_table(A: Any, b: Any, equality: Any = False) -> Table:
    """A table of dense rows (array, memmap, zarr), a scipy.sparse matrix, or CSR arrays (indptr, indices, data)."""
    if isinstance(A, tuple):
        if len(A) != 3:
            raise InputError("a tuple A must be (indptr, indices, data)")
        slab, shape, entries = _sparse_slab(*A), (len(A[0]) - 1, None), len(A[1])
        if len(A[1]) != len(A[2]):
            raise InputError(f"A has {len(A[1])} indices and {len(A[2])} numbers")
    elif sparse.issparse(A):
        A = A if A.format == "csr" else A.tocsr()
        slab, shape, entries = _sparse_slab(A.indptr, A.indices, A.data), A.shape, A.nnz
    else:
        A = A if hasattr(A, "shape") else np.asarray(A)
        if len(A.shape) != 2:
            raise InputError(f"A must have two dimensions, found shape {tuple(A.shape)}")
        slab, shape, entries = _dense_slab(A), A.shape, A.shape[0] * A.shape[1]
    b = b if hasattr(b, "shape") else np.asarray(b)
    equality = equality if hasattr(equality, "shape") or isinstance(equality, bool) else np.asarray(equality)
    for name, given in (("b", b), ("equality", equality)):
        if not isinstance(given, bool) and tuple(given.shape) != (shape[0],):
            raise InputError(f"{name} must have one entry a row, {shape[0]} in all, found shape {tuple(given.shape)}")
    stride = max(1, min(1 << 16, TABLE_ENTRIES * shape[0] // max(entries, 1)))
    if hasattr(A, "chunks") and A.chunks:
        # Whole chunks: a part of one costs as much to read.
        stride = max(stride // A.chunks[0], 1) * A.chunks[0]
    return Table(slab, b, equality, shape[0], shape[1], stride)


def _sparse_slab(indptr: Any, indices: Any, data: Any):
    def slab(first: int, last: int):
        start = np.asarray(indptr[first : last + 1], np.int64)
        span = slice(int(start[0]), int(start[-1]))
        found = start - start[0], np.array(indices[span]), np.array(data[span], np.float64)
        _release(indices, data)
        return found

    return slab


def _dense_slab(A: Any):
    def slab(first: int, last: int):
        block = np.asarray(A[first:last], np.float64)
        used = block != 0.0
        start = np.concatenate(([0], np.cumsum(np.count_nonzero(used, axis=1)))).astype(np.int64)
        found = start, np.nonzero(used)[1].astype(np.int32), block[used]
        _release(A)
        return found

    return slab


def _release(*arrays: Any) -> None:
    """Let go of the pages read from mapped files, which the system would else count as ours until it needs them."""
    for array in arrays:
        if isinstance(array, np.memmap) and array.mode == "r" and hasattr(mmap, "MADV_DONTNEED"):
            array._mmap.madvise(mmap.MADV_DONTNEED)


# -- ready-made oracles ---------------------------------------------------------------------------------------------


def explicit(A: Any, b: Any, *, equality: Any = False) -> Oracle:
    """All rows ``A x <= b``, or ``=`` where ``equality``, scanned a block at a time.

    Parameters
    ----------
    A : array, memmap, zarr array, scipy.sparse matrix, or (indptr, indices, data)
        With memmaps or zarr arrays it stays on disk. A row's key is its number.
    b : array
        One number a row.
    equality : bool or array of bool
        Which rows are equations.
    """
    table = read_table(A, b, equality)
    name = f"explicit, {table.count} rows"
    return Oracle(name, _scan(table), variables=table.variables, fingerprint=table.fingerprint)


def _scan(table: Table) -> Tasks:
    return lambda x, generator: [partial(table.read, *part) for part in table.parts()]


def random_subset(A: Any, b: Any, count: int, *, equality: Any = False, run: int = 1) -> Oracle:
    """``count`` random rows of a table at a time, in runs of ``run`` neighbours (the paper's Property 2).

    After as many draws as make up the table all rows are measured, so that the run can end with a proof. ``A``, ``b``
    and ``equality`` are those of `explicit`.
    """
    table = read_table(A, b, equality)
    if not (1 <= run <= count):
        raise InputError(f"count must be at least run, and run at least 1; found count={count!r}, run={run!r}")
    runs, some = -(-table.count // run), max(1, count // run)

    def draw(generator: np.random.Generator) -> Rows:
        first = np.sort(generator.choice(runs, size=min(some, runs), replace=False)) * run
        return Rows.join([table.read(int(at), min(int(at) + run, table.count)) for at in first])

    return Oracle(
        f"random_subset, {table.count} rows",
        lambda x, generator: [partial(draw, generator)],
        complete=False,
        check=_scan(table),
        draws=max(1, -(-table.count // count)),
        variables=table.variables,
        fingerprint=table.fingerprint,
    )


def from_function(function: Callable[[np.ndarray], Any], *, complete: bool = True, check: Any = None) -> Oracle:
    """Rows from a function of x: ``(A, b)``, ``(A, b, equality)`` or a list of ``(indices, coefficients, rhs)``.

    Rows may have keys, text or whole numbers by which ``result.duals`` has their multipliers: ``(A, b, equality,
    keys)``, or ``(indices, coefficients, rhs, equality, key)``. The same key must stand for the same row in every call.
    Without one, a row goes by a hash of its content.

    Parameters
    ----------
    function : x -> rows
    complete : bool
        Whether the function returns a violated row whenever there is one. If not, it is asked again and again.
    check : oracle, optional
        For a function that is not complete: anything `project_and_forget` takes as an oracle, which is.

    Examples
    --------
    >>> import ooc_pf as pf
    >>> def limits(x):
    ...     return [([0], [1.0], 3.0, False, "width"), ([0, 1], [1.0, 1.0], 4.0, False, "both")]
    >>> result = pf.project_and_forget(pf.objectives.quadratic([3.5, 1.5]), limits)
    >>> {name: round(dual, 6) for name, dual in result.duals.items()}
    {'both': 0.5}
    """
    tasks = _ask(function)
    if complete:
        return Oracle("function", tasks)
    thorough = None if check is None else read_oracle(check)
    return Oracle("function", tasks, complete=False, check=thorough and thorough.tasks, draws=10)


def _ask(function: Callable[[np.ndarray], Any]) -> Tasks:
    return lambda x, generator: [lambda: read_block(function(x.copy()))]


def from_blocks(blocks: Iterable[Any]) -> Oracle:
    """All rows of an iterable of blocks, each as a function may return it; it is gone through once a pass."""
    if not isinstance(blocks, Iterable):
        raise InputError(f"cannot read rows from {type(blocks).__name__}; give (A, b), a function, or a list of blocks")
    if iter(blocks) is blocks:
        raise InputError("the blocks of rows can be gone through only once; give a list, or an object that starts anew")
    return Oracle("blocks", lambda x, generator: (partial(read_block, block) for block in blocks))


def cycles(graph: Any, *, extra: Any = None, nonnegative: bool = True, keep_paths: int = 3, workers: int = 8) -> Oracle:
    """Metric rows of a graph: no edge longer than a path between its ends, and no length negative.

    Parameters
    ----------
    graph : (u, v, anything) arrays, square array, scipy.sparse matrix or igraph.Graph
        Variables are the edges, in this order; values on the edges do not matter.
    extra : oracle, optional
        More rows: anything that `project_and_forget` takes as an oracle.
    nonnegative : bool
        Whether lengths must not be negative, where triangles do not see to it.
    keep_paths : int
        Shortest paths named for each violated edge, at least one.
    workers : int
        Searches side by side, at most.
    """
    if keep_paths < 1:
        raise InputError(f"keep_paths must be at least 1, found {keep_paths!r}")
    edges = read_edges(graph)
    net = build_graph(edges.u.whole, edges.v.whole, edges.nodes)
    engine = NumbaOracle(net, None, workers)
    more = None if extra is None else read_oracle(extra)

    def tasks(x: np.ndarray, generator: np.random.Generator) -> Sequence[Task]:
        # Lengths below zero have rows of their own; a search takes them as zero, where no path gets longer by it.
        frozen = Frozen(net, Vector.of(x), limit=lambda lengths: lengths)
        engine.lay_out(frozen)
        # Whoever runs the tasks asks between them whether to go on.
        slack, stop = CYCLE_ROUNDING * float(np.abs(x).max(initial=0.0)), np.zeros(1, np.uint8)
        rules = SearchRules(hops=UNLIMITED, keep_paths=keep_paths, slack=slack)
        found: list[Task] = [
            lambda block=block: _cycle_rows(engine.search_block(frozen, block, rules=rules, stop=stop).rows)
            for block in cut(all_sources(net), settings.BLOCK_SOURCES)
        ]
        if nonnegative:
            found.append(lambda: _below_zero(x))
        return [*found, *(more.tasks(x, generator) if more else ())]

    return Oracle("cycles", tasks, complete=more is None or more.complete, variables=len(edges.u))


def _cycle_rows(rows: Rows) -> Rows:
    coefficient = np.full(len(rows.edges), -1.0)
    coefficient[rows.start[:-1]] = 1.0
    return Rows(rows.start, rows.edges, coefficient, np.zeros(len(rows)), np.zeros(len(rows), bool))


def _below_zero(x: np.ndarray) -> Rows:
    at = np.flatnonzero(x < 0.0).astype(np.int32)
    return Rows(np.arange(len(at) + 1), at, np.full(len(at), -1.0), np.zeros(len(at)), np.zeros(len(at), bool))
