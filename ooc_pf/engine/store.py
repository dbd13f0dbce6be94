"""The remembered rows: ragged CSR blocks with their duals, appended, visited block by block, and forgotten.

A block holds rows over local edge numbers and the sorted table of the edges they stand for, so a visit gathers the
block's part of y once, works on small contiguous arrays, and scatters it back. Blocks that do not fit the memory
budget wait on disk between visits.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..errors import BudgetError, InputError, WorkspaceError
from ..kernels.ragged import keep_rows
from ..storage.arrays import ArrayWriter, read_array, write_array
from ..storage.spill import Spilled
from ..storage.vectors import PAGE, Pool
from .names import Names
from .rows import CYCLE_FIELDS, GENERAL_FIELDS, NAME_FIELDS, RowBlock, Rows, name_fields

# The most of both in a block. They shape the bits: they decide which rows are visited side by side.
BLOCK_ROWS = 1 << 15
BLOCK_ENTRIES = 1 << 21


class ConstraintStore:
    """An ordered list of row blocks under a memory budget.

    Parameters
    ----------
    memory : int or None
        Bytes the blocks may keep resident; None means no limit.
    pool : Pool or None
        Has files in which blocks beyond the budget wait. Without one running out is an error.
    forgets : {"inactive", "all", "never"}
        What `forget` drops: rows whose dual is zero; those, and of the others all but the dual; nothing.
    changing : tuple of str
        The fields of a block that a visit may change.
    """

    def __init__(
        self,
        memory: int | None = None,
        pool: Pool | None = None,
        *,
        forgets: str = "inactive",
        changing: tuple[str, ...] = ("dual",),
    ):
        self._memory, self._pool = memory, pool
        self._forgets, self._changing = forgets, ("trail", *changing)
        self._blocks: list[RowBlock | Spilled] = []
        self._layers: list[list[int]] = []
        self._file: int | None = None
        self._resident = self._used = self.n_rows = 0
        self._named = False  # whether a row has a name

    def __len__(self) -> int:
        return self.n_rows

    def blocks(self) -> Iterator[RowBlock]:
        """Every block in order; what a visit may change is kept."""
        for at in range(len(self._blocks)):
            with self.visit([at], then=range(at + 1, min(at + 2, len(self._blocks)))) as found:
                yield found[0]

    @contextlib.contextmanager
    def visit(self, numbers: Sequence[int], then: Sequence[int] = ()) -> Iterator[list[RowBlock]]:
        """Some blocks, all at once; what a visit may change is kept. The blocks ``then`` will be visited next."""
        held = [self._blocks[at] for at in numbers]
        blocks = [each if isinstance(each, RowBlock) else RowBlock(**each.read()) for each in held]
        for coming in (self._blocks[at] for at in then):
            if isinstance(coming, Spilled):
                coming.expect()
        yield blocks
        for each, block in zip(held, blocks, strict=True):
            if isinstance(each, Spilled):
                each.update({field: getattr(block, field) for field in self._changing})

    @property
    def layers(self) -> list[list[int]]:
        """The numbers of all blocks, in groups to be visited side by side: they share no page of a vector by edge.

        The groups depend on the rows alone.
        """
        return self._layers

    def _put(self, blocks: Iterator[RowBlock]) -> None:
        """Replace the content by ``blocks``, which may be drawn from the present content."""
        stale, self._file = self._file, None
        fresh: list[RowBlock | Spilled] = []
        pages: list[np.ndarray] = []
        self._resident = self._used = self.n_rows = 0
        self._named = False
        for block in blocks:
            self.n_rows += len(block.dual)
            self._named = self._named or block.names is not None
            pages.append(_pages(block.table))
            fresh.append(self._hold(block))
        self._blocks, self._layers = fresh, _disjoint_groups(pages)
        if stale is not None and self._pool is not None:
            self._pool.close_file(stale)

    def _hold(self, block: RowBlock) -> RowBlock | Spilled:
        if self._memory is None or self._resident + block.nbytes <= self._memory:
            self._resident += block.nbytes
            return block
        if self._pool is None or not self._pool.has_room:
            raise BudgetError(
                f"the remembered rows need more than the {self._memory:,} bytes left for them; "
                "give more memory=, or a workspace= where they can wait on disk"
            )
        if self._file is None:
            self._file = self._pool.open_file()
        # Fields that change lie together, in front.
        order = (*self._changing, *(field for field in block.fields if field not in self._changing))
        held = Spilled.write(self._pool, self._file, self._used, {field: getattr(block, field) for field in order})
        self._used += held.nbytes
        return held

    def append(self, rows: Rows) -> int:
        """Remember the rows that are not here yet, with dual 0; returns how many those were.

        Where only duals are kept, a row comes back with its dual.
        """
        if not len(rows):
            return 0
        key, dual = rows.keys(), np.zeros(len(rows))
        order = np.argsort(key, kind="stable")
        ranked = key[order]
        fresh = np.zeros(len(key), bool)
        fresh[order[np.append(True, ranked[1:] != ranked[:-1])]] = True
        names = _checked_names(rows, order, ranked)
        for block in self.blocks():
            _refuse_collisions(names, ranked, block)
            if self._forgets == "all":
                _take_duals(block, key, dual, fresh)
            else:
                fresh[order[_found_in(ranked, block.key)]] = False
        added = int(fresh.sum())
        if added:
            kept = (_without_zeros(block) for block in self.blocks()) if self._forgets == "all" else self.blocks()
            self._put(_packed(kept, rows.select(fresh), dual[fresh], key[fresh]))
        return added

    def fill(self, rows: Rows, dual: np.ndarray) -> None:
        """Remember these rows, which are different, with their duals, and nothing else."""
        self._put(_packed(iter(()), rows, dual, rows.keys()))

    def forget(self) -> int:
        """Drop what this store forgets; returns how many rows those were."""
        if self._forgets == "never":
            return 0
        before = self.n_rows
        kept = (_without_zeros(block) for block in self.blocks())
        if self._forgets == "all":
            before = sum(int(np.count_nonzero(np.diff(block.start))) for block in self.blocks())
            kept = (_hollowed(block) for block in kept)
        self._put(_packed(kept, Rows.empty(), np.empty(0), np.empty(0, np.uint64)))
        return before if self._forgets == "all" else before - self.n_rows

    def keys(self) -> np.ndarray:
        """The keys of all rows, sorted."""
        return np.sort(np.concatenate([np.empty(0, np.uint64), *(block.key for block in self.blocks())]))

    def renumber(self, number: np.ndarray) -> None:
        """Give every edge e the new number ``number[e]``."""

        def renumbered() -> Iterator[RowBlock]:
            for block in self.blocks():
                rows = Rows(block.start.astype(np.int64), number[block.table[block.index]])
                yield RowBlock.build(rows, block.dual, rows.keys())

        self._put(renumbered())

    def write(self, group: Path) -> None:
        """Write all rows as one set of arrays, with a directory of the blocks."""
        ends = []
        writers: dict[str, ArrayWriter] = {}
        for block in map(_with_names, self.blocks()) if self._named else self.blocks():
            for field in block.fields:
                if field not in writers:
                    writers[field] = ArrayWriter(group, field, RowBlock.DTYPES[field])
                writers[field].append(getattr(block, field))
            ends.append([len(getattr(block, field)) for field in block.fields])
        for writer in writers.values():
            writer.close()
        write_array(group, "block_end", np.cumsum(np.array(ends, np.int64), axis=0).ravel())

    def read(self, group: Path, edges: int) -> "ConstraintStore":
        """Fill this store with what `write` wrote; row entries must be below ``edges``."""
        self._put(read_blocks(group, edges))
        return self


def _found_in(ranked: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Where the numbers ``key`` come first in the sorted numbers ``ranked``, of those that are there."""
    at = np.minimum(np.searchsorted(ranked, key), len(ranked) - 1)
    return at[ranked[at] == key]


def _pages(table: np.ndarray) -> np.ndarray:
    """The pages of a vector that sorted edges lie on."""
    page = table // PAGE
    return page[np.flatnonzero(np.diff(page, prepend=-1))]


def _disjoint_groups(pages: list[np.ndarray]) -> list[list[int]]:
    """Each number in the first group none of whose members shares a page with it."""
    groups: list[tuple[set[int], list[int]]] = []
    for number, own in enumerate(set(part.tolist()) for part in pages):
        taken, members = next((group for group in groups if own.isdisjoint(group[0])), (None, []))
        if taken is None:
            groups.append((own, [number]))
        else:
            taken |= own
            members.append(number)
    return [members for _, members in groups]


def read_blocks(group: Path, edges: int) -> Iterator[RowBlock]:
    """The written blocks, one at a time, checked."""
    # Workspaces of before rows had units, and those of cycles, lack what they do not need.
    known = (*CYCLE_FIELDS, *GENERAL_FIELDS, *NAME_FIELDS)
    fields = [field for field in known if field in CYCLE_FIELDS or (group / field).exists()]
    begin = np.zeros(len(fields), np.int64)
    ends = read_array(group, "block_end", dtype=np.int64)
    if len(ends) % len(fields) or (ends < 0).any():
        raise WorkspaceError(f"{group}: the list of blocks is damaged; `ooc-pf solve --restart` starts again")
    for end in ends.reshape(-1, len(fields)):
        spans = zip(fields, begin.tolist(), end.tolist(), strict=True)
        kinds = RowBlock.DTYPES
        parts = {field: read_array(group, field, first, last, kinds[field]) for field, first, last in spans}
        yield RowBlock.of(**parts).check(edges, str(group))
        begin = end


def _without_zeros(block: RowBlock) -> RowBlock:
    keep = block.dual != 0
    return block if keep.all() else _kept(block, keep)


def _kept(block: RowBlock, keep: np.ndarray) -> RowBlock:
    fields = {field: getattr(block, field) for field in block.fields}
    # The table stays: an edge no row uses is gathered and scattered unchanged, and costs less than renumbering.
    fields["start"], fields["index"] = keep_rows(block.start, block.index, keep)
    fields |= {field: fields[field][keep] for field in ("dual", "key", "rhs", "equality", "unit") if field in fields}
    if block.coefficient is not None:
        fields["coefficient"] = keep_rows(block.start, block.coefficient, keep)[1]
    if block.names is not None:
        fields |= name_fields(block.names.select(keep))
    return RowBlock.of(**fields)


def _hollowed(block: RowBlock) -> RowBlock:
    """The block with nothing left of its rows but key, dual and right-hand side."""
    none, general = np.empty(0, np.int32), block.general
    assert general is not None
    return RowBlock.of(
        table=none,
        start=np.zeros_like(block.start),
        index=none,
        dual=block.dual,
        key=block.key,
        coefficient=np.empty(0),
        rhs=general.rhs,
        equality=general.equality,
        unit=general.unit,
        **name_fields(block.names),
    )


def _with_names(block: RowBlock) -> RowBlock:
    return block if block.names is not None else replace(block, **name_fields(Names.none(len(block.dual))))


def _checked_names(rows: Rows, order: np.ndarray, ranked: np.ndarray) -> np.ndarray | None:
    """The names of rows that have some, by rising key; refuses different names of the same key."""
    if rows.names is None:
        return None
    names = np.array(list(rows.names), object)[order]
    again = ranked[1:] == ranked[:-1]
    _refuse_different(names[1:][again], names[:-1][again])
    return names


def _refuse_collisions(names: np.ndarray | None, ranked: np.ndarray, block: RowBlock) -> None:
    """Refuse rows of which ``names`` and keys are given if one has the key of a row of the block, and another name."""
    if names is None or block.names is None:
        return
    at = np.minimum(np.searchsorted(ranked, block.key), len(ranked) - 1)
    known = ranked[at] == block.key
    _refuse_different(names[at[known]], np.array(list(block.names.select(known)), object))


def _refuse_different(names: np.ndarray, others: np.ndarray) -> None:
    for name, other in zip(names, others, strict=True):
        if name != other:
            raise InputError(f"the keys {name!r} and {other!r} of two rows have the same hash; change one of them")


def _take_duals(block: RowBlock, key: np.ndarray, dual: np.ndarray, wanted: np.ndarray) -> None:
    """Move the duals of the wanted rows out of the block."""
    if not len(block.key):
        return
    order = np.argsort(block.key)
    at = order[np.minimum(np.searchsorted(block.key, key, sorter=order), len(order) - 1)]
    hit = wanted & (block.key[at] == key)
    dual[hit] += block.dual[at[hit]]
    block.dual[at[hit]] = 0.0


def _packed(blocks: Iterator[RowBlock], rows: Rows, dual: np.ndarray, key: np.ndarray) -> Iterator[RowBlock]:
    """The blocks with the new rows behind them; neighbours that fit into one block are merged."""
    held: RowBlock | None = None
    for block in _chain(blocks, rows, dual, key):
        if held is not None and _fit(held, block):
            merged = Rows.join([held.rows, block.rows])
            duals = np.concatenate((held.dual, block.dual))
            held = RowBlock.build(merged, duals, np.concatenate((held.key, block.key)))
            continue
        if held is not None and len(held.dual):
            yield held
        held = block
    if held is not None and len(held.dual):
        yield held


def _fit(one: RowBlock, other: RowBlock) -> bool:
    return len(one.dual) + len(other.dual) <= BLOCK_ROWS and len(one.index) + len(other.index) <= BLOCK_ENTRIES


def _chain(blocks: Iterator[RowBlock], rows: Rows, dual: np.ndarray, key: np.ndarray) -> Iterator[RowBlock]:
    yield from blocks
    first = 0
    while first < len(rows):
        # At least one row goes into a block, however long it is.
        room = int(np.searchsorted(rows.start, rows.start[first] + BLOCK_ENTRIES, side="right")) - 1
        last = min(first + BLOCK_ROWS, len(rows), max(room, first + 1))
        yield RowBlock.build(rows.span(first, last), dual[first:last], key[first:last])
        first = last
