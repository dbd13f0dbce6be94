"""What the life of a run asks of a kind of problem."""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..storage.memory import Budget
from ..storage.records import read_record, require
from ..storage.vectors import Pool
from ..storage.workspace import Workspace
from .certificate import Certificate
from .limits import Limits
from .monitor import Monitor
from .problem import FeasiblePoint, Plan, Problem, State, Store
from .rows import RowBlock

Options = dict[str, Any]


class Size(NamedTuple):
    """How large a problem is; of general problems ``edges`` are the variables, and there are no nodes."""

    nodes: int
    edges: int


@dataclass(frozen=True)
class Given:
    """What a caller hands over.

    Attributes
    ----------
    source
        The path of a workspace, or the problem itself in a form that the family reads.
    extras : dict or None
        Large options beside it, such as weights; None: those of the run that the workspace holds.
    labels : array or None
        Of the nodes, by number, where they have other names than their numbers: integers or text.
    begin : Begin or None
        Changes the state a run begins with.
    """

    source: Any
    extras: dict[str, Any] | None = field(default_factory=dict)
    labels: np.ndarray | None = None
    begin: "Begin | None" = None


class Begin(Protocol):
    """What a run begins with instead of nothing."""

    def check(self) -> None:
        """Raise what can be known to be wrong with it; called before an earlier run is discarded."""

    def __call__(
        self, state: State[Any, Any, Any], program: Any, data: Any, options: Options, session: "Session"
    ) -> None:
        """Change the state a run begins with."""


class Data(Protocol):
    """The input of a run, read and checked."""

    @property
    def size(self) -> Size: ...

    @property
    def fingerprint(self) -> str:
        """Recognises the same input later; of extras, see `Family.marks`."""
        ...

    def restore(self, point: FeasiblePoint) -> Any:
        """A point in the form in which the input was given."""
        ...

    def notes(self) -> dict[str, Any]:
        """What a result says about the input."""
        ...


@dataclass(frozen=True)
class Session:
    """Who works on a run, and with what.

    Attributes
    ----------
    workers : int
    pool : Pool
        Of vectors and scratch files.
    threads : Executor
        As many workers; processes for a family that asks for them.
    client : dask.distributed.Client or None
    workspace : Workspace or None
    """

    monitor: Monitor
    workers: int
    budget: Budget
    pool: Pool
    threads: Executor
    client: Any = None
    workspace: Workspace | None = None


class Family(Protocol):
    """One kind of problem: how a run of it is built, stored, loaded and verified.

    Attributes
    ----------
    name : str
        What manifests call the problem.
    kind : str
        The kind of workspace it works on.
    engine : str or None
        What the settings of its runs call it, where the name of the problem does not tell.
    keyed : str or None
        What the keys of its rows number, where multipliers are shown by key.
    free : tuple of str
        Options that may change between two calls on one workspace.
    resumable : bool
        Whether a workspace holds all that a run needs. Functions of the caller are not held.
    noun : str
        What the input is called.
    fields : dict
        What a result has beside the certificate, with the values while they are unknown.
    finish : function or None
        ``(data, state, options, status, stop) -> fields`` of a problem that makes more of its point, with ``x`` among
        them; it hurries once ``stop`` uint8[1] is set.
    """

    name: str
    kind: str
    engine: str | None
    keyed: str | None
    free: tuple[str, ...]
    resumable: bool
    noun: str
    fields: dict[str, Any]
    finish: Callable[[Any, Any, Options, str, np.ndarray], dict[str, Any]] | None

    # -- what is asked for --------------------------------------------------------------------------------------------

    def check(self, options: Options, limits: Limits) -> Options:
        """The options in plain form; refuses those that no run can have."""
        ...

    def check_held(self, workspace: Workspace) -> None:
        """Refuse a run in a workspace whose options or settings are none that this family writes."""
        ...

    def settle(self, options: Options, size: Size, held: Options | None, limits: Limits, *, disk: bool) -> Options:
        """The options in full, with the settings; a run that is ``held`` already keeps its own."""
        ...

    def needs_disk(self, options: Options) -> bool:
        """Whether a run works only from a workspace, where processes of its own can find it."""
        ...

    def processes(self, options: Options) -> bool:
        """Whether its workers are processes."""
        ...

    def budget(self, given: Given, size: Size, options: Options, limits: Limits, workers: int, *, disk: bool) -> Budget:
        """How the memory is shared out; refuses too little."""
        ...

    # -- input --------------------------------------------------------------------------------------------------------

    def read(self, given: Given) -> Data:
        """The input from what the caller handed over."""
        ...

    def create(self, path: Any, data: Any) -> None:
        """Make a workspace of it."""
        ...

    def open(self, workspace: Workspace, given: Given, options: Options, pool: Pool) -> Data:
        """The input from a workspace, with the extras given, or the stored ones."""
        ...

    def marks(self, data: Any, options: Options) -> Options:
        """Fingerprints of the extras, to stand for them in the options."""
        ...

    # -- a run --------------------------------------------------------------------------------------------------------

    def build(self, data: Any, options: Options, session: Session) -> Any:
        """The program, in memory."""
        ...

    def lay_out(self, data: Any, options: Options, session: Session) -> Any:
        """The program, written down in the workspace for `load`."""
        ...

    def load(self, data: Any, options: Options, session: Session) -> Any:
        """The program that `lay_out` wrote down."""
        ...

    def start(self, program: Any, options: Options, pool: Pool) -> tuple[Any, Plan]:
        """The point and the plan a run begins with."""
        ...

    def load_point(self, program: Any, workspace: Workspace, pool: Pool) -> Any:
        """The committed point."""
        ...

    def load_plan(self, workspace: Workspace) -> Plan:
        """The committed plan; refuses one that this family could not have written."""
        ...

    def load_feasible(self, program: Any, group: Path, pool: Pool) -> FeasiblePoint:
        """The committed feasible point."""
        ...

    def new_store(self, program: Any, budget: Budget, pool: Pool) -> Store:
        """An empty store of rows."""
        ...

    def load_rows(self, store: Any, point: Any, group: Path) -> Store:
        """The store, filled with the committed rows."""
        ...

    def write(self, group: Path, state: State[Any, Any, Any]) -> None:
        """Write what a run goes on from, for the ``load`` methods."""
        ...

    def problem(self, program: Any, options: Options, session: Session) -> Problem[Any, Any, Any]:
        """The steps of Algorithm 1."""
        ...

    # -- the answer ---------------------------------------------------------------------------------------------------

    def measured(self, violation: float) -> dict[str, Any]:
        """What a result says about the last complete check, beside the violation."""
        ...

    def blocks(self, workspace: Workspace) -> Iterator[RowBlock]:
        """The committed rows, for a result."""
        ...

    def verify(self, workspace: Workspace, *, oracle: str, workers: int | None, memory: Any) -> dict[str, Any]:
        """Recompute what the workspace claims; raises WorkspaceError at the first thing that does not hold."""
        ...


def holds_run_of(family: Family, workspace: Workspace) -> bool:
    """Whether the run in a workspace is of this family, going by its name."""
    problem = workspace.manifest["problem"]
    return problem is not None and (problem["name"], engine_of(problem)) == (family.name, family.engine)


def engine_of(problem: dict[str, Any]) -> Any:
    """What the settings of a run call its family, where that is not the name of the problem."""
    return (problem["options"].get("settings") or {}).get("engine")


def check_family(family: Family, workspace: Workspace) -> None:
    """Refuse a run that this family could not have written, before anything relies on its options."""
    problem, kind = workspace.manifest["problem"], workspace.manifest["graph"]["kind"]
    name, answers = problem["name"], problem["answers"]
    fits = holds_run_of(family, workspace) and kind == family.kind and answers == (family.finish is not None)
    found = f"a run of {name!r} on a graph of kind {kind!r} {'with' if answers else 'without'} an answer of its own"
    require(fits, workspace.record, found)
    unknown = [name for name in workspace.manifest.get("facts", ()) if name not in family.fields]
    require(not (workspace.answer and unknown), workspace.record, f"{name!r} makes no {', '.join(unknown)}")
    for entry in ("certificate", "closing"):
        stored_certificate(workspace, entry)
    family.check_held(workspace)


def stored_certificate(workspace: Workspace, name: str) -> Certificate | None:
    """The certificate in an entry of the manifest, if there is one."""
    stored = workspace.manifest[name]
    if stored is None:
        return None
    values = {name: math.inf if value is None else value for name, value in stored.items()}
    return read_record(Certificate, values, workspace.record, name)
