"""Edge lists in Parquet files, read as checked columns, batch after batch."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from ..errors import InputError
from .columns import Unclear, are_positions, choose_columns, locate, locate_positions, propose
from .fields import SKIP_REMEDY
from .kinds import is_id, is_number, is_text, plain_type
from .layout import Asked
from .text import row_schema

# Cost only: rows read at once, and bytes of the file's read buffer.
BATCH_ROWS = 1 << 17
BUFFER_BYTES = 1 << 20


class ParquetSource:
    """One Parquet file, read as `TextSource` reads text; parameters and attributes as there."""

    unit, format, delimiter, extra = "row", "Parquet", None, 0

    def __init__(self, path: Path, asked: Asked, value: str, skip_bad: bool):
        self.path, self.value, self.skip_bad = path, value, skip_bad
        self.bad, self.lines, self.done = 0, 0, 0.0
        with self._opened() as file:
            schema = file.schema_arrow
        self.header, self.width = tuple(schema.names), len(schema.names)
        self.positions = self._find_columns(asked)
        self.columns = tuple(schema.names[position] for position in self.positions)
        locate(path.name, self.columns, schema.names, "in its schema")  # columns are read by name
        kinds = [plain_type(schema.field(name).type) for name in self.columns]
        self._check_types(kinds)
        self.has_value = len(kinds) == 3
        self.text_labels = any(is_text(kind) for kind in kinds[:2])

    def _find_columns(self, asked: Asked) -> tuple[int, ...]:
        """The places of the columns to read, as the user or their names say."""
        file, names = self.path.name, list(self.header)
        if asked.delimiter is not None or asked.header is not None:
            raise InputError(f"{file}: a Parquet file has neither delimiter nor header; leave these options out")
        if len(names) < 2:
            raise InputError(f"{file} has {len(names)} column(s), expected two or three: node, node, value")
        if asked.columns is not None and are_positions(asked.columns) and not set(asked.columns) <= set(names):
            return locate_positions(file, asked.columns, len(names))
        if asked.columns is not None:
            return locate(file, asked.columns, names, "in its schema")
        try:
            return choose_columns(names)
        except Unclear as unclear:
            told = ", ".join(names[:20])
            raise InputError(f"{file}: the columns are {told}, and {unclear}; {propose(names)}") from None

    def _check_types(self, kinds: list[pa.DataType]) -> None:
        node = (is_id, "integers or text for a node id")
        number = (is_number, f"numbers for {self.value}")
        for name, kind, (fits, wanted) in zip(self.columns, kinds, (node, node, number), strict=False):
            if not fits(kind):
                raise InputError(
                    f"{self.path.name}: column {name!r} has type {kind}, expected {wanted}; "
                    f"choose other columns with columns= (--columns)"
                )

    @contextlib.contextmanager
    def _opened(self) -> Iterator[parquet.ParquetFile]:
        try:
            with parquet.ParquetFile(self.path, buffer_size=BUFFER_BYTES) as file:
                yield file
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0][:200]
            raise InputError(f"{self.path.name}: not a readable Parquet file ({reason}); get it again") from None

    def tables(self) -> Iterator[pa.Table]:
        """Columns a, b, value and position (the row number from 1) of all good rows, in order."""
        first, self.bad = 1, 0
        with self._opened() as file:
            total = max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(BATCH_ROWS, columns=list(self.columns)):
                self.done = (first - 1 + len(batch)) / total
                yield self._checked(batch, first)
                first += len(batch)
        self.lines = first - 1

    def _checked(self, batch: pa.RecordBatch, first: int) -> pa.Table:
        """The good rows of a batch whose first row has the number ``first``."""
        schema = row_schema(self.text_labels)
        a, b = (self._labels(batch, name, schema.field("a").type) for name in self.columns[:2])
        value = pa.array(np.ones(len(batch)))
        if self.has_value:
            value = batch.column(self.columns[2]).cast(pa.float64(), safe=False)
        good = self._usable(a, b, value)
        bad = len(batch) - good.true_count
        if bad and not self.skip_bad:
            raise self._row_error(batch, good.index(False).as_py(), first)
        self.bad += bad
        return pa.table([a, b, value, np.arange(first, first + len(batch))], schema=schema).filter(good)

    def _usable(self, a: pa.Array, b: pa.Array, value: pa.Array) -> pa.Array:
        """Whether each row has two labels and a finite value."""
        good = pc.and_(pc.and_(a.is_valid(), b.is_valid()), pc.fill_null(pc.is_finite(value), False))
        if self.text_labels:
            good = pc.and_(good, pc.fill_null(pc.and_(pc.not_equal(a, ""), pc.not_equal(b, "")), False))
        return good

    def _row_error(self, batch: pa.RecordBatch, at: int, first: int) -> InputError:
        row = [batch.column(name)[at].as_py() for name in self.columns]
        wanted = f"two node ids and a finite {self.value}" if self.has_value else "two node ids"
        return InputError(f"{self.path.name} row {first + at}: {str(row)[:120]} is not {wanted}; {SKIP_REMEDY}")

    def _labels(self, batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
        try:
            return batch.column(name).cast(kind)
        except pa.ArrowInvalid:
            raise InputError(
                f"{self.path.name}: column {name!r} holds ids above 2**63 - 1; store them as text instead"
            ) from None
