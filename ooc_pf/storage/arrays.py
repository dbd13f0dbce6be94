"""Vectors on disk: chunked, checksummed, written once and in order."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec

from ..errors import WorkspaceError

CHUNK_BYTES = 1 << 20  # costs time and memory only


def write_array(group: Path, name: str, values: np.ndarray) -> None:
    """Write a whole vector as ``group/name``."""
    with ArrayWriter(group, name, values.dtype) as writer:
        writer.append(values)


def write_parts(group: Path, name: str, parts: Iterable[np.ndarray], dtype: Any) -> None:
    """Write a vector that comes in consecutive parts."""
    with ArrayWriter(group, name, dtype) as writer:
        for part in parts:
            writer.append(part)


def open_array(group: Path, name: str) -> zarr.Array:
    """Open ``group/name`` for reading."""
    try:
        return zarr.open_array(group / name, mode="r")
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise WorkspaceError(f"{group / name}: array missing or damaged ({type(error).__name__}: {error})") from error


def read_array(group: Path, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
    """Read ``group/name[start:stop]``; a chunk that fails its checksum is an error that names it."""
    array = open_array(group, name)
    stop = array.shape[0] if stop is None else min(stop, array.shape[0])
    for chunk in range(start // array.chunks[0], -(-stop // array.chunks[0])):
        # The library takes a chunk without a file for zeros.
        if not (group / name / "c" / str(chunk)).is_file():
            raise WorkspaceError(f"{group / name}: chunk {chunk} is missing, the array is damaged")
    try:
        return np.asarray(array[start:stop])
    except Exception as error:
        raise WorkspaceError(f"{group / name}: cannot be read, the file is damaged ({error})") from error


def read_parts(group: Path, name: str) -> Iterator[np.ndarray]:
    """The vector ``group/name``, a chunk at a time."""
    array = open_array(group, name)
    for start in range(0, array.shape[0], array.chunks[0]):
        yield read_array(group, name, start, start + array.chunks[0])


class ArrayWriter:
    """Appends to one chunked, checksummed vector; whole chunks go to disk as they fill."""

    def __init__(self, group: Path, name: str, dtype: Any):
        self._path = group / name
        self._dtype = np.dtype(dtype)
        self._chunk = CHUNK_BYTES // self._dtype.itemsize
        self._array: zarr.Array | None = None
        self._pending: list[np.ndarray] = []
        self._held = 0

    def append(self, values: np.ndarray) -> None:
        """Add values at the end."""
        self._pending.append(np.array(values, dtype=self._dtype))
        self._held += len(values)
        if self._held >= self._chunk:
            self._write(self._held - self._held % self._chunk)

    def _create(self, length: int) -> zarr.Array:
        # A short vector gets a chunk of its own size: chunks are written whole, and padding would cost more than data.
        return zarr.create_array(
            self._path,
            shape=(length,),
            chunks=(max(1, min(length, self._chunk)),),
            dtype=self._dtype,
            fill_value=0,
            filters=None,
            compressors=[Crc32cCodec()],
            serializer=BytesCodec(),
            # An all-zero chunk must exist too: a missing file would otherwise read as zeros instead of as damage.
            config={"write_empty_chunks": True},
        )

    def _write(self, count: int) -> None:
        values = np.concatenate(self._pending) if self._pending else np.empty(0, self._dtype)
        start = 0 if self._array is None else self._array.shape[0]
        if self._array is None:
            self._array = self._create(count)
        elif count:
            self._array.resize((start + count,))
        if count:
            self._array[start : start + count] = values[:count]
        self._pending, self._held = [values[count:]], self._held - count

    def close(self) -> None:
        """Write what is left."""
        self._write(self._held)

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()


def write_labels(group: Path, labels: np.ndarray | list[str]) -> None:
    """Write node labels: integers as they are, anything else as UTF-8 text with offsets."""
    values = np.asarray(labels)
    if np.issubdtype(values.dtype, np.integer):
        write_array(group, "labels", values.astype(np.int64))
        return
    encoded = [str(label).encode() for label in labels]
    write_array(group, "label_end", np.cumsum([len(text) for text in encoded], dtype=np.int64))
    write_array(group, "label_text", np.frombuffer(b"".join(encoded), np.uint8))


def read_labels(group: Path) -> np.ndarray:
    """Node labels as written: int64, or an object array of str."""
    if (group / "labels").exists():
        return read_array(group, "labels")
    ends = read_array(group, "label_end")
    text = read_array(group, "label_text").tobytes()
    starts = np.concatenate(([0], ends[:-1])) if len(ends) else ends
    return np.array([text[a:b].decode() for a, b in zip(starts, ends, strict=True)], dtype=object)


def digest(*arrays: np.ndarray) -> str:
    """A fingerprint, to recognise the same numbers later."""
    total = hashlib.blake2b(digest_size=16)
    for array in arrays:
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()
