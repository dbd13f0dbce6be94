"""Scored pairs of records, as record linkage makes them."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from .kinds import is_id, plain_type
from .tables import as_column, is_table, read_columns

# Names of splink. Records of several data sets are told apart by both of their ids, joined as splink joins them.
WEIGHT, PROBABILITY = "match_weight", "match_probability"
DATASETS, IDS, JOINT = ("source_dataset_l", "source_dataset_r"), ("unique_id_l", "unique_id_r"), "-__-"
CERTAIN = 1e-15  # a probability nearer to 0 or 1 counts as this near


def read_links(
    links: Any,
    source: str | None,
    target: str | None,
    weight: str | None,
    probability: str | bool | None,
    threshold: float | None,
) -> tuple[pa.ChunkedArray, pa.ChunkedArray, np.ndarray]:
    """Both ids and the weight of each link; arguments as of `cluster_links`."""
    probability = probability or None
    if weight is not None and probability is not None:
        raise InputError("give weight= or probability=, not both")
    if is_table(links):
        a, b, values, is_probability = _read_link_table(links, source, target, weight, probability)
    elif isinstance(links, tuple) and len(links) == 3:
        a, b = (_ids(np.asarray(ends), what) for ends, what in zip(links[:2], ("left ids", "right ids"), strict=True))
        values, is_probability = np.asarray(links[2], np.float64), probability is not None
    else:
        raise InputError(f"links must be a table or arrays (left, right, weight), found {type(links).__name__}")
    if not len(a) == len(b) == len(values):
        raise InputError(f"the links have {len(a)} left ids, {len(b)} right ids and {len(values)} numbers")
    return a, b, _log_odds(values, threshold) if is_probability else _above(values, threshold)


def _read_link_table(
    links: Any, source: str | None, target: str | None, weight: str | None, probability: str | bool | None
) -> tuple[pa.ChunkedArray, pa.ChunkedArray, np.ndarray, bool]:
    table = links if hasattr(links, "iloc") else pa.table(links)
    names = [str(name) for name in (table.columns if hasattr(links, "iloc") else table.column_names)]
    if weight is None and probability is None:
        weight = WEIGHT if WEIGHT in names else None
        probability = PROBABILITY if weight is None and PROBABILITY in names else None
    value = probability if isinstance(probability, str) else weight
    if source is None and target is None and {*DATASETS, *IDS} <= {*names}:
        columns = [*DATASETS, *IDS, *([value] if value else ())]
        table = _with_datasets(pa.table(table[columns] if hasattr(links, "iloc") else table.select(columns)))
    return (*read_columns(table, source, target, value), probability is not None)


def _with_datasets(table: pa.Table) -> pa.Table:
    """Ids of records that are unique over several data sets."""
    for dataset, name in zip(DATASETS, IDS, strict=True):
        parts = (pc.cast(table[dataset], pa.large_string()), pc.cast(table[name], pa.large_string()))
        joined = pc.binary_join_element_wise(*parts, pa.scalar(JOINT, pa.large_string()))
        table = table.set_column(table.column_names.index(name), name, joined)
    return table.drop_columns(list(DATASETS))


def _above(values: np.ndarray, threshold: float | None) -> np.ndarray:
    return values - (0.0 if threshold is None else float(threshold))


def _log_odds(values: np.ndarray, threshold: float | None) -> np.ndarray:
    """Log odds of probabilities over those of the threshold."""
    threshold = 0.5 if threshold is None else threshold
    if not 0.0 < threshold < 1.0:
        raise InputError(f"threshold must be a probability between 0 and 1, found {threshold!r}")
    wrong = ~((values >= 0.0) & (values <= 1.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"row {row} (from 0) has {values[row]}, which is no probability; name weights with weight=")
    p = np.clip(values, CERTAIN, 1.0 - CERTAIN)
    return np.log(p) - np.log1p(-p) - (np.log(threshold) - np.log1p(-threshold))


def read_pairs(given: Any, what: str) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Both ids of pairs that are known to belong together, or apart."""
    if given is None or (isinstance(given, list | tuple) and not given):
        return (pa.chunked_array([], pa.int64()),) * 2
    if is_table(given):
        return read_columns(given)[:2]
    pairs = np.empty((len(given), 2), object)
    try:
        pairs[:] = [(one, two) for one, two in given]
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a list of pairs of ids, or a table with two columns of ids") from None
    return _ids(pairs[:, 0].tolist(), what), _ids(pairs[:, 1].tolist(), what)


def read_records(given: Any) -> pa.ChunkedArray:
    """The ids of records."""
    return _ids(given, "records")


def _ids(values: Any, what: str) -> pa.ChunkedArray:
    """Ids, none of which is missing."""
    found = as_column(values)
    if found.null_count:
        row = pc.index(found.is_null(), True).as_py()
        raise InputError(f"{what}, entry {row} (from 0): an id is missing; remove it")
    if not is_id(plain_type(found.type)) and len(found):
        raise InputError(f"{what}: ids must be integers or text, found {found.type}")
    return found
