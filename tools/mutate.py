"""Changes that a workspace or a file of edges was never meant to have, made so that they get past the checksums."""

import copy
import json
import os
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from ooc_pf.errors import WorkspaceError
from ooc_pf.storage.arrays import digest_group
from ooc_pf.storage.workspace import sealed

Dice = random.Random

# -- values in JSON ---------------------------------------------------------------------------------------------------

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 255, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63, 10**30, 0.0, -0.0, 0.5, -1.5,
    1e-300, 1e300, -1e300, "", "x", "../..", "numba", "igraph", "stalled", "\ud800", "a" * 300, [], {}, [1], {"a": 1},
    [[[[]]]],
]  # fmt: skip
RAW = ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, "[" * 2000 + "]" * 2000, '{"a":' * 500 + "1" + "}" * 500]


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a value from JSON."""
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in items:
        yield from paths(part, (*at, name))


def mutate_json(value: Any, dice: Dice) -> str:
    """JSON text in which something is missing, added, exchanged, or of another kind."""
    value = copy.deepcopy(value)
    places = [place for place in paths(value) if place]
    if not places:
        return json.dumps(dice.choice(VALUES))
    for _ in range(dice.choice((1, 1, 1, 2))):
        place = dice.choice(places)
        try:
            holder = _at(value, place[:-1])
            _change(holder, place[-1], value, places, dice)
        except (KeyError, IndexError, TypeError, AttributeError):
            continue  # an earlier change took it away
    text = json.dumps(value)
    return text.replace('"@raw@"', dice.choice(RAW))


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for name in place:
        value = value[name]
    return value


def _change(holder: Any, name: Any, whole: Any, places: list[tuple[Any, ...]], dice: Dice) -> None:
    kind = dice.randrange(8)
    if kind == 0:
        del holder[name]
    elif kind == 1 and isinstance(holder, dict):
        holder[dice.choice(["x", "", "stage", "__class__", "engine"])] = dice.choice(VALUES)
    elif kind == 1:
        holder.insert(dice.randrange(len(holder) + 1), dice.choice(VALUES))
    elif kind == 2:
        holder[name] = copy.deepcopy(_at(whole, dice.choice(places)))
    elif kind == 3:
        holder[name] = "@raw@"
    elif kind == 4 and type(holder[name]) in (int, float):
        holder[name] = holder[name] * dice.choice((-1, 2, 0.5, 1 + 1e-9, 1e6)) + dice.choice((0, 0, 1, -1))
    else:
        holder[name] = dice.choice(VALUES)


# -- bytes ------------------------------------------------------------------------------------------------------------


def mutate_bytes(data: bytes, dice: Dice) -> bytes:
    """The data with some bytes flipped, cut off, doubled or put in."""
    kind, at = dice.randrange(5), dice.randrange(len(data) + 1)
    if kind == 0 and data:
        at = min(at, len(data) - 1)
        return data[:at] + bytes([data[at] ^ (1 << dice.randrange(8))]) + data[at + 1 :]
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data[:at] + dice.randbytes(dice.choice((1, 4, 40))) + data[at:]
    if kind == 3:
        return data + data[at:]
    return data[:at] + data[min(len(data), at + dice.choice((1, 8, 100))) :]


# -- arrays -----------------------------------------------------------------------------------------------------------

NUMBERS = {
    "i": [0, 1, -1, 2**31 - 1, -(2**31), 7, 2**20],
    "u": [0, 1, 2**8 - 1, 7],
    "f": [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e300, 1e-320, -1e-9, 0.5],
    "b": [True, False],
}


def read_plain(array: Path) -> tuple[np.ndarray, dict[str, Any]]:
    """The values of an array of one chunk, and its metadata."""
    about = json.loads((array / "zarr.json").read_text())
    kind, length = np.dtype(about["data_type"]), about["shape"][0]
    return np.frombuffer((array / "c" / "0").read_bytes()[:-4], kind)[:length].copy() if length else np.empty(
        0, kind
    ), about


def write_plain(array: Path, values: np.ndarray, about: dict[str, Any]) -> None:
    """Write an array of one chunk as if it had always been so."""
    data = values.tobytes()
    about["shape"], about["chunk_grid"]["configuration"]["chunk_shape"] = [len(values)], [max(1, len(values))]
    about["data_type"] = values.dtype.name
    about["codecs"][0] = {"name": "bytes"}
    if values.dtype.itemsize > 1:
        about["codecs"][0]["configuration"] = {"endian": "little"}
    (array / "zarr.json").write_text(json.dumps(about))
    (array / "c").mkdir(exist_ok=True)
    (array / "c" / "0").write_bytes(data + struct.pack("<I", google_crc32c.value(data)))


def mutate_array(array: Path, dice: Dice) -> None:
    """Other numbers, another length, another type; with a checksum that holds."""
    values, about = read_plain(array)
    kind = dice.randrange(8)
    if kind == 0:
        values = values[: dice.randrange(len(values) + 1)]
    elif kind == 1:
        values = np.concatenate((values, values[-1:] if len(values) else np.zeros(1, values.dtype)))
    elif kind == 2:
        values = values.astype(dice.choice(["int32", "int64", "float64", "uint8", "bool", "uint64"]))
    elif kind == 3 and len(values) > 1:
        one, other = dice.sample(range(len(values)), 2)
        values[one], values[other] = values[other], values[one]
    elif len(values):
        for _ in range(dice.choice((1, 1, 3))):
            at = dice.randrange(len(values))
            with np.errstate(all="ignore"):
                near = values[at] + dice.choice((1, -1)) if values.dtype.kind in "if" else values[at]
                values[at] = np.array(dice.choice([*NUMBERS[values.dtype.kind], near])).astype(values.dtype)
    write_plain(array, values, about)


# -- workspaces -------------------------------------------------------------------------------------------------------


def arrays_of(run: Path) -> list[Path]:
    """Every array of a workspace."""
    return sorted(file.parent for file in run.rglob("zarr.json") if (file.parent / "c").is_dir())


def reseal(run: Path) -> None:
    """Bring the fingerprints in a manifest in line with what is there, as far as it can be read."""
    try:
        manifest = json.loads((run / "manifest.json").read_text())
        groups = manifest["digests"]["groups"]
        for name in groups:
            groups[name] = digest_group(run / name)
        history = (run / "history.jsonl").read_bytes() if (run / "history.jsonl").is_file() else b""
        if len(history) < manifest["history_bytes"]:
            return  # what is gone cannot be made good
        manifest = sealed(manifest, history[: manifest["history_bytes"]])
        (run / "manifest.json").write_text(json.dumps(manifest))
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError, WorkspaceError):
        pass


def _manifest(run: Path, dice: Dice) -> None:
    file = run / "manifest.json"
    if dice.random() < 0.1:
        file.write_bytes(mutate_bytes(file.read_bytes(), dice))
    else:
        file.write_text(mutate_json(json.loads(file.read_text()), dice))


def _history(run: Path, dice: Dice) -> None:
    file = run / "history.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    kind, at = dice.randrange(4), dice.randrange(len(lines))
    if kind == 0:
        lines[at] = mutate_bytes(lines[at], dice)
    elif kind == 1:
        del lines[at]
    else:
        lines[at] = mutate_json(json.loads(lines[at]), dice).encode() + b"\n"
    file.write_bytes(b"".join(lines))
    if dice.random() < 0.7:
        manifest = json.loads((run / "manifest.json").read_text())
        (run / "manifest.json").write_text(json.dumps({**manifest, "history_bytes": file.stat().st_size}))


def _metadata(run: Path, dice: Dice) -> None:
    file = dice.choice(arrays_of(run)) / "zarr.json"
    if dice.random() < 0.1:
        file.write_bytes(mutate_bytes(file.read_bytes(), dice))
    else:
        file.write_text(mutate_json(json.loads(file.read_text()), dice))


def _chunk(run: Path, dice: Dice) -> None:
    """Bytes of a chunk, or of rows that are not in chunks."""
    file = dice.choice(sorted(file for file in (*run.rglob("c/*"), *run.glob("*.npy")) if file.is_file()))
    file.write_bytes(mutate_bytes(file.read_bytes(), dice))


def _values(run: Path, dice: Dice) -> None:
    mutate_array(dice.choice(arrays_of(run)), dice)


def _graph(run: Path, dice: Dice) -> None:
    found = arrays_of(run / "graph.zarr") or arrays_of(run)
    for array in dice.sample(found, min(len(found), dice.choice((1, 1, 2)))):
        mutate_array(array, dice)


def _files(run: Path, dice: Dice) -> None:
    """Something is missing, something else has its name, or it leads elsewhere."""
    entry = dice.choice(sorted(run.rglob("*")))
    kind = dice.randrange(4)
    if kind == 3 and entry.is_dir():
        other = dice.choice([each for each in sorted(run.rglob("*")) if each.is_dir() and each not in entry.parents])
        if other != entry and entry not in other.parents:
            shutil.rmtree(entry)
            shutil.copytree(other, entry)
        return
    moved = run.with_name("moved")
    entry.rename(moved)
    if kind == 0:
        entry.symlink_to(moved)
    elif kind == 1:
        entry.mkdir() if moved.is_file() else entry.touch()
    elif kind == 2:
        os.mkfifo(entry)


MUTATORS: dict[str, Callable[[Path, Dice], None]] = {
    "manifest": _manifest,
    "history": _history,
    "metadata": _metadata,
    "chunk": _chunk,
    "values": _values,
    "graph": _graph,
    "files": _files,
}
WEIGHTS = (5, 2, 2, 1, 4, 4, 1)


def mutate_workspace(run: Path, dice: Dice) -> str:
    """Change a workspace in one way; mostly so that the fingerprints do not tell. Returns what was changed."""
    (name,) = dice.choices(list(MUTATORS), WEIGHTS)
    MUTATORS[name](run, dice)
    if dice.random() < 0.8 and (run / "manifest.json").is_file():
        reseal(run)
    return name


# -- files of edges ---------------------------------------------------------------------------------------------------

FIELDS = [
    b"", b"0", b"-1", b"007", b"1e400", b"-1e400", b"nan", b"inf", b"1e-320", b"1,5", b"1_000", b"0x10", b"9" * 40,
    b"a b", b'"', b"'", b"#", b"%", b"\xff\xfe", b"\x00", "\u0665".encode(), "é".encode(), b"\t", b"1.0.0", b"+", b"-",
    b"True",
]  # fmt: skip
ENDS = [b"\n", b"\r\n", b"\r", b"\n\n", b"", b" \n", b"\x0b\n", b"\x85\n"]


def mutate_edges(text: bytes, dice: Dice) -> bytes:
    """A file of edges with fields, lines or bytes that were not meant."""
    lines = text.splitlines()
    for _ in range(dice.choice((1, 2, 5))):
        at = dice.randrange(len(lines))
        fields = lines[at].split()
        kind = dice.randrange(6)
        if kind == 0 and fields:
            fields[dice.randrange(len(fields))] = dice.choice(FIELDS)
        elif kind == 1:
            fields.append(dice.choice(FIELDS))
        elif kind == 2 and fields:
            fields.pop()
        elif kind == 3 and fields:
            fields[-1] = fields[0]
        elif kind == 4:
            fields = [dice.choice(FIELDS) * dice.choice((1, 1, 10_000))]
        lines[at] = dice.choice([b" ", b" ", b"\t", b",", b";", b"|"]).join(fields)
    data = dice.choice([b"\n", b"\n", *ENDS]).join(lines) + dice.choice(ENDS)
    return mutate_bytes(data, dice) if dice.random() < 0.2 else data
