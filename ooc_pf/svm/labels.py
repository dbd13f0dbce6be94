"""Labels and weights as numbers by row, and a problem as one soft constraint a row."""

from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError
from .program import NONE, Program, check_block, row_weights


def encode_labels(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The number of the class of each row, in few bytes."""
    code = np.empty(len(labels), np.int8 if len(classes) < 128 else np.int32)
    for first in range(0, len(labels), 1 << 20):
        part = labels[first : first + (1 << 20)]
        code[first : first + len(part)] = part == classes[1] if len(classes) == 2 else np.searchsorted(classes, part)
    return code


def read_weights(sample_weight: Any, rows: int) -> np.ndarray:
    """The weights of the rows; empty: ones."""
    if sample_weight is None:
        return NONE
    weight = np.asarray(sample_weight, np.float64)
    weight = np.full(rows, float(weight)) if weight.ndim == 0 else weight
    if weight.shape != (rows,):
        raise InputError(f"sample_weight must have one entry a row, {rows:,} in all, found shape {weight.shape}")
    wrong = ~(np.isfinite(weight) & (weight >= 0.0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"sample_weight[{at}] is {weight[at]}; weights must be numbers from 0 on")
    return weight


def class_weights(given: Any, classes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """A weight for each class, of which ``counts`` says how many rows it has."""
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str):
        if given != "balanced":
            raise InputError(f"class_weight must be a dict, 'balanced' or None, found {given!r}")
        return counts.sum() / (len(classes) * np.maximum(counts, 1))
    names = classes.tolist()
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InputError(f"class_weight has the class {unknown[0]!r}, which is not in y")
    found = np.array([float(given.get(name, 1.0)) for name in names])
    if not (np.isfinite(found).all() and (found >= 0.0).all()):
        raise InputError(f"class_weight must have numbers from 0 on, found {given!r}")
    return found


def soft_rows(program: Program) -> tuple[Any, np.ndarray, np.ndarray]:
    """(A, b, weights) such that the problem is min 1/2 sum weights v^2 over A v <= b, for v = (w, xi).

    Of two classes, without an intercept. Rows of weight zero are left out.
    """
    table, parts = program.table, []
    for pieces in table.tasks([[span] for span in table.parts]):
        for first, load in pieces:
            block = load()
            check_block(block, range(first, first + len(block)))
            parts.append(as_matrix(block))
    sign = np.where(program.code == program.positive[0], 1.0, -1.0)
    weights = row_weights(program, slice(0, table.rows), 1.0)
    used = np.flatnonzero(weights > 0.0)
    X = sparse.diags(-sign[used]) @ sparse.vstack([sparse.csr_matrix(part) for part in parts])[used]
    A = sparse.hstack((X, -sparse.eye(len(used)))).tocsr()
    return A, -np.ones(len(used)), np.concatenate((np.ones(table.columns), weights[used]))


def as_matrix(block: Any) -> Any:
    """A block as an array, or as a scipy.sparse matrix."""
    if isinstance(block, np.ndarray):
        return block
    return sparse.csr_matrix((block.value, block.index, block.start), shape=(len(block), block.width))
