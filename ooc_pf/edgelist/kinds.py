"""What a column of an Arrow table may hold, by its type."""

import pyarrow as pa


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values, which may be stored by number in a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Whether values are text."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def is_id(kind: pa.DataType) -> bool:
    """Whether values may name nodes."""
    return pa.types.is_integer(kind) or is_text(kind)


def is_number(kind: pa.DataType) -> bool:
    """Whether values may be distances or weights."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
