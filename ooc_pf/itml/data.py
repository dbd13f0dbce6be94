"""A problem of metric learning as the input of a run, and how a workspace holds it.

Points with classes are held, and listed pairs as the differences of their points, unless these are too many. Then a fit
goes on when it is called again with the same pairs.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.family import Size
from ..engine.handed import HandedData
from ..kernels.itml import Terms
from ..storage.arrays import digest, read_array, write_array
from ..storage.manifest import EDGES
from ..storage.matrices import open_matrix, write_matrix
from ..storage.records import require
from ..storage.workspace import Workspace
from . import settings
from .inputs import Task
from .pairs import AllPairs, ListedPairs, Source

POINTS, PAIRS = "points", "pairs"
DIFFERENCES = "pairs.npy"  # of a workspace: the differences of listed pairs


@dataclass(frozen=True)
class ItmlData(HandedData):
    """A task, and how it is solved."""

    task: Task
    method: str

    @property
    def size(self) -> Size:
        return Size(0, self.task.source.dimension**2)

    @property
    def fingerprint(self) -> str:
        """Of points and classes; of listed pairs their labels, and the differences of a few."""
        source = self.task.source
        shared = np.array(source.terms), self.task.root
        if isinstance(source, AllPairs):
            return digest(*shared, source.points, source.classes, source.groups)
        places = np.linspace(0, max(source.size - 4, 0), 16).astype(int)
        some = [source.read(int(at), min(int(at) + 4, source.size)) for at in places]
        return digest(*shared, source.sign, np.concatenate(some))

    def hold(self, directory: Path) -> dict[str, Any]:
        """Write what a run needs into a workspace that is being made; returns what its manifest says of it."""
        source, group, d = self.task.source, directory / EDGES, self.task.source.dimension
        bytes_held = source.points.nbytes if isinstance(source, AllPairs) else 8 * d * source.size
        if bytes_held > settings.HELD:
            return {"held": None, "why": f"its pairs have {bytes_held:,} bytes, more than {settings.HELD:,}"}
        write_array(group, "terms", np.array(source.terms, np.float64))
        write_array(group, "root", self.task.root.ravel())
        write_array(group, "dropped", np.array([self.task.dropped]))
        if isinstance(source, AllPairs):
            write_array(group, "points", source.points.ravel())
            write_array(group, "classes", source.classes)
            write_array(group, "groups", source.groups)
            return {"held": POINTS}
        write_array(group, "sign", (source.sign + 1).astype(np.uint8))
        write_matrix(directory / DIFFERENCES, _parts(source), (source.size, d))
        return {"held": PAIRS, "pairs": digest_pairs(source)}


def _parts(source: ListedPairs) -> Iterator[np.ndarray]:
    for first in range(0, source.size, settings.LIST):
        yield source.read(first, min(first + settings.LIST, source.size))


def digest_pairs(source: ListedPairs) -> str:
    """A fingerprint of all differences."""
    total = hashlib.blake2b(digest_size=16)
    for part in _parts(source):
        total.update(np.ascontiguousarray(part).tobytes())
    return total.hexdigest()


def holds_input(workspace: Workspace) -> bool:
    """Whether a workspace has its pairs."""
    return workspace.manifest["graph"]["source"].get("held") is not None


def why_not_held(workspace: Workspace) -> str:
    """What to say of a workspace without its pairs."""
    found = workspace.manifest["graph"]["source"].get("why")
    return found if isinstance(found, str) else "it was made by a release that did not keep the pairs"


def read_held(workspace: Workspace) -> Task:
    """The task that a workspace holds; refuses what no run wrote."""
    group, held = workspace.edges, workspace.manifest["graph"]["source"]["held"]
    d = round(workspace.manifest["graph"]["edges"] ** 0.5)
    terms, root = (read_array(group, name, dtype=np.float64) for name in ("terms", "root"))
    dropped = read_array(group, "dropped", dtype=np.int64)
    sound = len(terms) == 4 and len(root) == d * d and len(dropped) == 1
    sound = sound and bool(np.isfinite(root).all() and np.isfinite(terms).all() and (terms > 0.0).all())
    require(sound, group, "the terms are not what a run writes")
    make = {POINTS: _held_points, PAIRS: _held_pairs}.get(held if isinstance(held, str) else "")
    if make is None:
        require(False, workspace.record, f"graph.source.held is {held!r}")
    assert make is not None
    return Task(make(workspace, d, Terms(*terms.tolist())), root.reshape(d, d), int(dropped[0]))


def _held_points(workspace: Workspace, d: int, terms: Terms) -> AllPairs:
    group = workspace.edges
    points = read_array(group, "points", dtype=np.float64)
    classes, groups = (read_array(group, name, dtype=np.int32) for name in ("classes", "groups"))
    sound = len(points) == d * len(classes) == d * len(groups) and bool(np.isfinite(points).all())
    require(sound and len(classes) > 1 and bool((classes >= 0).all()), group, "the points are not what a run writes")
    return AllPairs(points.reshape(-1, d), classes, groups, terms)


def _held_pairs(workspace: Workspace, d: int, terms: Terms) -> ListedPairs:
    sign = read_array(workspace.edges, "sign", dtype=np.uint8)
    require(len(sign) > 0 and int(sign.max()) <= 2, workspace.edges, "sign is not what a run writes")
    differences = open_matrix(workspace.path / DIFFERENCES, (len(sign), d))

    def read(first: int, last: int) -> np.ndarray:
        return np.array(differences[first:last])

    return ListedPairs(read, sign.astype(np.int8) - np.int8(1), d, terms)


def check_pairs(workspace: Workspace, source: Source) -> bool:
    """Whether listed pairs are those that the workspace was made with."""
    if not isinstance(source, ListedPairs):
        return True  # arrays of groups have fingerprints of their own
    return workspace.manifest["graph"]["source"].get("pairs") == digest_pairs(source)
