"""Rows of constraints in memory: ragged, over edges or other variables, and packed into blocks with their duals."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ..errors import WorkspaceError
from ..kernels.ragged import general_keys, keep_rows, row_keys, take_rows
from .names import Names

TRAIL = 6  # duals of this many sweeps are at hand for extrapolation; shapes the bits

CYCLE_FIELDS = ("table", "start", "index", "dual", "key")
GENERAL_FIELDS = ("coefficient", "rhs", "equality", "unit")
NAME_FIELDS = ("name_start", "name_text")


class General(NamedTuple):
    """What general rows have beside their entries: a coefficient each; right-hand side, flag and unit a row."""

    coefficient: np.ndarray
    rhs: np.ndarray
    equality: np.ndarray
    unit: np.ndarray


def _general(rows: "Rows | RowBlock") -> General | None:
    if rows.coefficient is None or rows.rhs is None or rows.equality is None:
        return None
    unit = np.ones(len(rows.rhs)) if rows.unit is None else rows.unit
    return General(rows.coefficient, rows.rhs, rows.equality, unit)


@dataclass(frozen=True)
class Rows:
    """Ragged rows; row i is over ``edges[start[i]:start[i + 1]]``.

    A cycle has nothing else: the closing edge comes first. A general row ``<a, x> <= rhs`` also has a coefficient an
    entry, and a flag for ``=`` instead of ``<=``; its entries are variables. ``key`` identifies rows whose source
    numbers them. ``unit`` is what a row was multiplied by to bring it to the size of the others; None means 1.
    ``names`` are what the source calls them, where it does.
    """

    start: np.ndarray
    edges: np.ndarray
    coefficient: np.ndarray | None = None
    rhs: np.ndarray | None = None
    equality: np.ndarray | None = None
    key: np.ndarray | None = None
    unit: np.ndarray | None = None
    names: Names | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.start) - 1

    @classmethod
    def empty(cls) -> "Rows":
        return cls(np.zeros(1, np.int64), np.empty(0, np.int32))

    @classmethod
    def join(cls, parts: list["Rows"]) -> "Rows":
        """All rows of the parts, in order."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if not parts:
            return cls.empty()
        length = np.concatenate([np.diff(part.start) for part in parts])
        start = np.concatenate(([0], np.cumsum(length, dtype=np.int64)))
        edges = np.concatenate([part.edges for part in parts])
        fields = {name: _joined(parts, name) for name in (*GENERAL_FIELDS, "key")}
        return cls(start, edges, **fields, names=_joined_names(parts))

    def select(self, keep: np.ndarray) -> "Rows":
        """The rows marked in ``keep``, bool[rows]."""
        start, edges = keep_rows(self.start, self.edges, keep)
        coefficient = None if self.coefficient is None else keep_rows(self.start, self.coefficient, keep)[1]
        rest = (None if each is None else each[keep] for each in (self.rhs, self.equality, self.key, self.unit))
        found = Rows(start, edges, coefficient, *rest)
        return found if self.names is None else replace(found, names=self.names.select(keep))

    def take(self, order: np.ndarray) -> "Rows":
        """The rows ``order``, in that order; for cycles."""
        return Rows(*take_rows(self.start, self.edges, order))

    def span(self, first: int, last: int) -> "Rows":
        """Rows ``first`` to ``last``, as views."""
        entries = slice(self.start[first], self.start[last])
        coefficient = None if self.coefficient is None else self.coefficient[entries]
        rest = (None if each is None else each[first:last] for each in (self.rhs, self.equality, self.key, self.unit))
        found = Rows(self.start[first : last + 1] - self.start[first], self.edges[entries], coefficient, *rest)
        return found if self.names is None else replace(found, names=self.names.span(first, last))

    def keys(self) -> np.ndarray:
        """What identifies each row: its source's number, or else its content."""
        if self.key is not None:
            return self.key
        general = _general(self)
        if general is None:
            return row_keys(self.start, self.edges)
        coefficient, rhs = (values.astype(np.float64).view(np.uint64) for values in general[:2])
        return general_keys(self.start, self.edges, coefficient, rhs, general.equality)


def _joined(parts: list["Rows"], name: str) -> np.ndarray | None:
    values = [getattr(part, name) for part in parts]
    return None if any(value is None for value in values) else np.concatenate(values)


def _joined_names(parts: list["Rows"]) -> Names | None:
    if all(part.names is None for part in parts):
        return None
    return Names.join([part.names or Names.none(len(part)) for part in parts])


@dataclass(frozen=True)
class RowBlock:
    """Rows over the edges ``table[index]``, with a dual and an identifying key each.

    Only ``dual`` and ``trail``, the duals of recent sweeps, change in most problems; the trail is not part of the
    stored state. The last fields are those of general rows, and the names of those that have any. A general row
    without entries is one whose dual alone was kept.
    """

    table: np.ndarray
    start: np.ndarray
    index: np.ndarray
    dual: np.ndarray
    key: np.ndarray
    trail: np.ndarray
    coefficient: np.ndarray | None = None
    rhs: np.ndarray | None = None
    equality: np.ndarray | None = None
    unit: np.ndarray | None = None
    name_start: np.ndarray | None = None
    name_text: np.ndarray | None = None

    DTYPES = {  # noqa: RUF012
        "table": np.int32,
        "start": np.int32,
        "index": np.int32,
        "dual": np.float64,
        "trail": np.float64,
        "key": np.uint64,
        "coefficient": np.float64,
        "rhs": np.float64,
        "equality": np.bool_,
        "unit": np.float64,
        "name_start": np.int32,
        "name_text": np.uint8,
    }

    @classmethod
    def build(cls, rows: Rows, dual: np.ndarray, key: np.ndarray) -> "RowBlock":
        table, index = np.unique(rows.edges, return_inverse=True)
        general = _general(rows)
        extra = {} if general is None else general._asdict()
        extra |= name_fields(rows.names)
        return cls.of(
            table=table.astype(np.int32),
            start=rows.start.astype(np.int32),
            index=index.astype(np.int32),
            dual=dual,
            key=key,
            **extra,
        )

    @classmethod
    def of(cls, **fields: np.ndarray) -> "RowBlock":
        """A block from its stored fields."""
        if "coefficient" in fields:
            fields.setdefault("unit", np.ones(len(fields["dual"])))
        return cls(**fields, trail=np.zeros((TRAIL, len(fields["dual"]))))

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the stored fields."""
        general = () if self.coefficient is None else GENERAL_FIELDS
        return CYCLE_FIELDS + general + (() if self.names is None else NAME_FIELDS)

    @property
    def names(self) -> Names | None:
        """The names of the rows, if one of them has any."""
        if self.name_start is None or self.name_text is None:
            return None
        return Names(self.name_start.astype(np.int64), self.name_text)

    @property
    def general(self) -> General | None:
        """Coefficients, right-hand sides and equations of general rows; None for cycles."""
        return _general(self)

    @property
    def rows(self) -> Rows:
        general = self.general
        extra = {} if general is None else general._asdict()
        return Rows(self.start.astype(np.int64), self.table[self.index], **extra, names=self.names)

    @property
    def nbytes(self) -> int:
        return self.trail.nbytes + sum(getattr(self, field).nbytes for field in self.fields)

    def check(self, edges: int, where: str) -> "RowBlock":
        """Refuse a block whose numbers cannot be right, before a kernel follows them."""
        general = self.general
        sound = (
            len(self.start) == len(self.dual) + 1 == len(self.key) + 1
            and (len(self.start) == 0 or self.start[0] == 0)
            and self.start[-1] == len(self.index)
            and (np.diff(self.start) >= (2 if general is None else 0)).all()
            and (self.index >= 0).all()
            and (self.index < len(self.table)).all()
            and (self.table >= 0).all()
            and (self.table < edges).all()
            and np.isfinite(self.dual).all()
        )
        if sound and general is not None:
            sound = (
                len(general.coefficient) == len(self.index)
                and len(general.rhs) == len(general.equality) == len(general.unit) == len(self.dual)
                and (np.isfinite(general.unit) & (general.unit > 0)).all()
                and np.isfinite(general.coefficient).all()
                and np.isfinite(general.rhs).all()
                and (self.dual[~general.equality] >= 0).all()
            )
        elif sound:
            sound = (self.dual >= 0).all()
        if sound and (self.name_start is not None or self.name_text is not None):
            sound = self.names is not None and self.names.fit(self.key)
        if not sound:
            raise WorkspaceError(f"{where}: the stored rows are damaged; `ooc-pf solve --restart` starts again")
        return self


def name_fields(names: Names | None) -> dict[str, np.ndarray]:
    """Names as the fields of a block."""
    return {} if names is None else {"name_start": names.start.astype(np.int32), "name_text": names.text}
