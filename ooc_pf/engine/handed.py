"""What families have in common whose problem is handed over as Python objects.

A workspace of such a family has everything else, so a run goes on when it is called again with the same objects. Where
they are arrays it may hold them, too.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..storage.memory import Budget, parse_memory, refuse_below
from ..storage.vectors import Pool, flat
from ..storage.workspace import Workspace, building, create_manifest
from .family import Given, Options, Session, Size
from .limits import Limits, check_seed, check_tol
from .problem import FeasiblePoint
from .rows import RowBlock


class HandedData:
    """Input whose answer is one vector."""

    def restore(self, point: FeasiblePoint) -> np.ndarray:
        return flat(point)

    def notes(self) -> dict[str, Any]:
        return {}

    def hold(self, directory: Path) -> dict[str, Any]:
        """Write the input into a workspace that is being made, if it can be held; returns what the manifest says."""
        return {}


class HandedFamily:
    """The methods of `Family` that are the same for all of them.

    A family adds ``alone``, the words for what works on one machine only, and ``needs(given, size, options)``: the
    bytes that are held in any case, and the fewest that rows need beside them.
    """

    name: str
    kind: str
    alone: str
    fields: dict[str, Any]
    engine = None
    finish: Any = None
    keyed: str | None = "rows"
    free = ("tol",)  # the state is as good for one tolerance as for another
    resumable = False

    # -- what is asked for --------------------------------------------------------------------------------------------

    def check(self, options: Options, limits: Limits) -> Options:
        if limits.client is not None:
            raise InputError(f"client= is for searches over cycles; {self.alone} on one machine")
        check_tol(options["tol"])
        plain = {**options, "tol": float(options["tol"])}
        if "seed" in options:
            check_seed(options["seed"])
            plain["seed"] = int(options["seed"])
        return plain

    def settle(self, options: Options, size: Size, held: Options | None, limits: Limits, *, disk: bool) -> Options:
        return options

    def needs_disk(self, options: Options) -> bool:
        return False

    def processes(self, options: Options) -> bool:
        return False

    def needs(self, given: Given, size: Size, options: Options) -> tuple[int, int]:
        raise NotImplementedError

    def budget(self, given: Given, size: Size, options: Options, limits: Limits, workers: int, *, disk: bool) -> Budget:
        if isinstance(limits.memory, Budget):
            return limits.memory
        budget = parse_memory(limits.memory)
        if budget is None:
            return Budget()
        fixed, least = self.needs(given, size, options)
        refuse_below(fixed + least, budget, limits.memory)
        return Budget(rows=budget - fixed)

    # -- input --------------------------------------------------------------------------------------------------------

    def read(self, given: Given) -> Any:
        return given.source

    def create(self, path: Any, data: Any) -> None:
        with building(path) as directory:
            source = {"file": None, "digest": data.fingerprint, **data.hold(directory)}
            create_manifest(directory, kind=self.kind, nodes=0, edges=data.size.edges, source=source)

    def open(self, workspace: Workspace, given: Given, options: Options, pool: Pool) -> Any:
        return given.source

    def marks(self, data: Any, options: Options) -> Options:
        return {}

    # -- a run --------------------------------------------------------------------------------------------------------

    def build(self, data: Any, options: Options, session: Session) -> Any:
        return data

    def lay_out(self, data: Any, options: Options, session: Session) -> Any:
        return self.build(data, options, session)

    def load(self, data: Any, options: Options, session: Session) -> Any:
        return self.build(data, options, session)

    def load_rows(self, store: Any, point: Any, group: Path) -> Any:
        store.read(group)
        return store

    def write(self, group: Path, state: Any) -> None:
        state.point.write(group)
        state.rows.write(group / "rows")

    # -- the answer ---------------------------------------------------------------------------------------------------

    def measured(self, violation: float) -> dict[str, Any]:
        return {}

    def blocks(self, workspace: Workspace) -> Iterator[RowBlock]:
        return iter(())
