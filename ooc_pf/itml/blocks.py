"""Pairs that come in blocks: they are put into a temporary file, and read from there like an array.

A run looks at all pairs several times. So blocks need to come once only, and nothing of their number is held.
"""

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError


def are_blocks(pairs: Any) -> bool:
    """Whether pairs come in blocks: from a function, or from an iterable that is no array or list of pairs."""
    if hasattr(pairs, "shape") or hasattr(pairs, "__array__") or isinstance(pairs, list | tuple | str | bytes):
        return False
    return callable(pairs) or isinstance(pairs, Iterable)


@contextlib.contextmanager
def spooled(pairs: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs and labels of blocks ``(pairs, y)``, the pairs mapped from a file that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pairs")
        labels, shape, dtype = [], None, np.dtype(np.float64)
        with open(path, "wb") as file:
            for number, given in enumerate(pairs() if callable(pairs) else pairs):
                block, y = _checked(given, number, shape)
                if shape is None:
                    shape, dtype = block.shape[1:], _kept_as(block)
                block.astype(dtype, copy=False).tofile(file)
                labels.append(y)
        if shape is None or not sum(map(len, labels)):
            raise InputError("there are no pairs: found 0 sample(s) in all blocks while a minimum of 1 is required")
        y = np.concatenate(labels)
        yield np.memmap(path, dtype, "r", shape=(len(y), *shape)), y


def _checked(given: Any, number: int, shape: tuple[int, ...] | None) -> tuple[np.ndarray, np.ndarray]:
    """A block and its labels; ``shape`` is that of the pairs before it."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputError(f"a block must be (pairs, y); number {number} is {type(given).__name__}")
    block, y = np.asarray(given[0]), np.asarray(given[1])
    if block.ndim not in (2, 3) or block.shape[1] != 2 or block.dtype.kind not in "fiub":
        raise InputError(
            f"pairs of block {number} must be [n, 2, d] or [n, 2] numbers, found shape {list(block.shape)}"
        )
    if shape is not None and block.shape[1:] != shape:
        raise InputError(f"pairs of block {number} are {list(block.shape[1:])} each, those before it {list(shape)}")
    if y.shape != block.shape[:1]:
        raise InputError(f"block {number} has {len(block)} pairs and labels of shape {list(y.shape)}")
    return block, y.astype(np.int8) if np.isin(y, (-1, 1)).all() else y


def _kept_as(block: np.ndarray) -> np.dtype:
    """Numbers of points as integers, points as float32 where they are."""
    if block.ndim == 2 and block.dtype.kind in "iu":
        return np.dtype(np.int64)
    return np.dtype(np.float32 if block.dtype == np.float32 else np.float64)
