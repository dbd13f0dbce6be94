"""Vectors on disk: chunked, checksummed, written once and in order.

A group is a directory with a ``zarr.json``, and in it each array is a directory with its own: any reader of Zarr v3
opens them. The library reads. Writing is done here: an array is created exclusively, in a group that exists, so that
nothing is written through a link or under a name that was moved away.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import zarr

from ..errors import InputError, WorkspaceError
from .files import check_own, gone, new_file
from .records import parse_json

CHUNK_BYTES = 1 << 20  # costs time and memory only
LARGEST_CHUNK = 1 << 26  # bytes; more in one chunk was not written here
MOST_ELEMENTS = 1 << 48  # of an array; more were not written here
METADATA = "zarr.json"
CHECKSUM = 4  # bytes behind each chunk
KINDS = ("bool", "uint8", "int32", "int64", "uint64", "float64")


def make_group(group: Path) -> None:
    """Make ``group`` a Zarr group, in a directory that exists; nothing happens if it is one already."""
    try:
        if not check_own(group, directory=True):
            os.mkdir(group)
    except FileNotFoundError:
        raise gone(group.parent) from None
    if not check_own(group / METADATA, directory=False):
        _write_metadata(group, {"attributes": {}, "zarr_format": 3, "node_type": "group"})


def _write_metadata(place: Path, metadata: dict[str, Any]) -> None:
    with new_file(place / METADATA) as file:
        file.write(json.dumps(metadata, indent=2).encode())


def write_array(group: Path, name: str, values: np.ndarray) -> None:
    """Write a whole vector as ``group/name``."""
    with ArrayWriter(group, name, values.dtype) as writer:
        writer.append(values)


def write_parts(group: Path, name: str, parts: Iterable[np.ndarray], dtype: Any) -> None:
    """Write a vector that comes in consecutive parts."""
    with ArrayWriter(group, name, dtype) as writer:
        for part in parts:
            writer.append(part)


def open_array(group: Path, name: str, dtype: Any = None) -> zarr.Array:
    """Open ``group/name`` for reading, if it is a vector as they are written here.

    Parameters
    ----------
    group : Path
    name : str
    dtype : dtype, optional
        What its elements must be.

    Returns
    -------
    zarr.Array
    """
    place = group / name
    owned = check_own(group, directory=True) and check_own(place, directory=True)
    if not owned or not check_own(place / METADATA, directory=False):
        raise WorkspaceError(f"{place}: array missing or damaged, there is no {METADATA}")
    check_own(place / "c", directory=True)
    try:
        metadata = (place / METADATA).read_bytes()
    except FileNotFoundError:
        raise WorkspaceError(f"{place}: array missing, it was removed meanwhile") from None
    kind = _checked_kind(parse_json(metadata, place / METADATA), place)
    if dtype is not None and np.dtype(dtype).name != kind:
        raise WorkspaceError(f"{place} is damaged: it holds {kind}, expected {np.dtype(dtype).name}")
    try:
        return zarr.open_array(place, mode="r", zarr_format=3)
    except Exception as error:
        raise WorkspaceError(f"{place}: array missing or damaged ({type(error).__name__}: {error})") from error


def open_foreign(place: Path) -> zarr.Array:
    """An array that somebody else wrote, of any shape, for reading."""
    try:
        return zarr.open_array(place, mode="r")
    except Exception as error:
        raise InputError(f"{place} is not a Zarr array ({type(error).__name__}: {error})") from error


def _checked_kind(metadata: Any, place: Path) -> str:
    """The element type of an array; refuses metadata of anything but a vector with checksums, in chunks we could hold.

    Releases of the library spell the same thing in several ways.
    """
    try:
        (length,), kind = metadata["shape"], metadata["data_type"]
        grid, keys, codecs = (metadata[name] for name in ("chunk_grid", "chunk_key_encoding", "codecs"))
        (chunk,) = grid["configuration"]["chunk_shape"]
        sound = (
            (metadata["zarr_format"], metadata["node_type"]) == (3, "array")
            and (type(length), type(chunk), type(kind)) == (int, int, str)
            and (grid["name"], keys["name"], kind in KINDS) == ("regular", "default", True)
            and 0 <= length <= MOST_ELEMENTS
            and 1 <= chunk <= LARGEST_CHUNK // np.dtype(kind).itemsize
            and keys.get("configuration", {}).get("separator", "/") == "/"
            and [codec["name"] for codec in codecs] == ["bytes", "crc32c"]
            and codecs[0].get("configuration", {}).get("endian", "little") == "little"
            and not metadata.get("storage_transformers")
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        sound = False
    if not sound:
        raise WorkspaceError(f"{place / METADATA} is damaged: it is not the metadata of a vector as written here")
    return kind


def _metadata(length: int, chunk: int, dtype: np.dtype) -> dict[str, Any]:
    """What Zarr v3 says of a vector with checksums."""
    endian = {} if dtype.itemsize == 1 else {"configuration": {"endian": "little"}}
    return {
        "shape": [length],
        "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": dtype.type(0).item(),
        "codecs": [{"name": "bytes", **endian}, {"name": "crc32c"}],
        "attributes": {},
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }


def read_array(group: Path, name: str, start: int = 0, stop: int | None = None, dtype: Any = None) -> np.ndarray:
    """Read ``group/name[start:stop]``; a chunk that fails its checksum is an error that names it."""
    return _read(open_array(group, name, dtype), group / name, start, stop)


def _read(array: zarr.Array, place: Path, start: int, stop: int | None) -> np.ndarray:
    length, chunk = array.shape[0], array.chunks[0]
    stop = length if stop is None else min(stop, length)
    chunks = range(start // chunk, -(-stop // chunk))
    _require_chunks(place, chunks)
    try:
        values = np.asarray(array[start:stop])
    except Exception as error:
        raise WorkspaceError(f"{place}: cannot be read, the file is damaged ({error})") from error
    _require_chunks(place, chunks)  # a running solve may have removed them meanwhile
    return values


def _require_chunks(place: Path, chunks: range) -> None:
    """Refuse an array that lacks some of its chunks: the library takes one without a file for zeros."""
    for number in chunks:
        if not check_own(place / "c" / str(number), directory=False):
            raise WorkspaceError(f"{place}: chunk {number} is missing, the array is damaged")


def read_parts(group: Path, name: str, dtype: Any = None) -> Iterator[np.ndarray]:
    """The vector ``group/name``, a chunk at a time."""
    array = open_array(group, name, dtype)
    for start in range(0, array.shape[0], array.chunks[0]):
        yield _read(array, group / name, start, start + array.chunks[0])


class ArrayWriter:
    """Appends to one chunked, checksummed vector; whole chunks go to disk as they fill.

    The array is there when it is closed: its metadata are written last.
    """

    def __init__(self, group: Path, name: str, dtype: Any):
        self._group, self._path = group, group / name
        self._dtype = np.dtype(dtype)
        if self._dtype.name not in KINDS:
            raise TypeError(f"arrays of {self._dtype} are not written here")
        self._most = CHUNK_BYTES // self._dtype.itemsize
        self._chunk = 0  # elements of a chunk, once the first is written
        self._length = 0  # written
        self._pending: list[np.ndarray] = []
        self._held = 0
        self._open = False

    def append(self, values: np.ndarray) -> None:
        """Add values at the end."""
        self._pending.append(np.array(values, dtype=self._dtype))
        self._held += len(values)
        if self._held >= self._most:
            self._write(self._held - self._held % self._most)

    def _create(self) -> None:
        make_group(self._group)
        try:
            os.mkdir(self._path)
            os.mkdir(self._path / "c")
        except FileNotFoundError:
            raise gone(self._path.parent) from None
        self._open = True

    def _write(self, count: int) -> None:
        values = np.concatenate(self._pending) if self._pending else np.empty(0, self._dtype)
        if not self._open:
            self._create()
            # A short vector gets a chunk of its own size: chunks are written whole, and padding costs more than data.
            self._chunk = max(1, min(count, self._most))
        for first in range(0, count, self._chunk):
            self._write_chunk(values[first : min(first + self._chunk, count)])
        self._pending, self._held = [values[count:]], self._held - count

    def _write_chunk(self, values: np.ndarray) -> None:
        number, padding = self._length // self._chunk, self._chunk - len(values)
        if padding:
            values = np.concatenate((values, np.zeros(padding, self._dtype)))
        data = values.astype(self._dtype.newbyteorder("<"), copy=False).tobytes()
        with new_file(self._path / "c" / str(number)) as file:
            file.write(data)
            file.write(google_crc32c.value(data).to_bytes(CHECKSUM, "little"))
        self._length += len(values) - padding

    def close(self) -> None:
        """Write what is left."""
        self._write(self._held)
        _write_metadata(self._path, _metadata(self._length, self._chunk, self._dtype))

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
    try:
        encoded = [str(label).encode() for label in labels]
    except UnicodeEncodeError as error:
        raise InputError(f"the label {error.object!r} is no text: it holds half of a character of two") from None
    write_array(group, "label_end", np.cumsum([len(text) for text in encoded], dtype=np.int64))
    write_array(group, "label_text", np.frombuffer(b"".join(encoded), np.uint8))


def count_labels(group: Path) -> int:
    """How many node labels there are."""
    return open_array(group, "labels" if (group / "labels").exists() else "label_end", np.int64).shape[0]


def read_labels(group: Path) -> np.ndarray:
    """Node labels as written: int64, or an object array of str."""
    if (group / "labels").exists():
        return read_array(group, "labels", dtype=np.int64)
    ends = read_array(group, "label_end", dtype=np.int64)
    text = read_array(group, "label_text", dtype=np.uint8).tobytes()
    starts = np.concatenate(([0], ends[:-1])) if len(ends) else ends
    try:
        return np.array([text[a:b].decode() for a, b in zip(starts, ends, strict=True)], dtype=object)
    except UnicodeDecodeError as error:
        raise WorkspaceError(f"{group}: the labels are damaged ({error}); convert the edges again") from error


def digest_group(group: Path) -> str:
    """A fingerprint of all arrays of a group, from their metadata and the checksums of their chunks: quick to take."""
    total = hashlib.blake2b(digest_size=16)
    for folder, folders, files in os.walk(group):
        folders.sort()
        of_array = METADATA if "c" in folders else None
        for name in sorted(files):
            path = Path(folder, name)
            if name != of_array and path.parent.name != "c":
                continue
            check_own(path, directory=False)
            try:
                with open(path, "rb") as file:
                    size = file.seek(0, os.SEEK_END)
                    file.seek(0 if name == METADATA else max(0, size - CHECKSUM))
                    total.update(f"{path.relative_to(group).as_posix()} {size} ".encode() + file.read())
            except FileNotFoundError:
                raise WorkspaceError(f"{path} was removed meanwhile") from None
    return total.hexdigest()


def label_marks(labels: np.ndarray | None) -> list[np.ndarray]:
    """What labels of nodes, if any, add to a fingerprint."""
    if labels is None:
        return []
    return [np.frombuffer("\0".join(map(str, labels)).encode(), np.uint8)]


def digest(*arrays: np.ndarray) -> str:
    """A fingerprint, to recognise the same numbers later."""
    total = hashlib.blake2b(digest_size=16)
    for array in arrays:
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()
