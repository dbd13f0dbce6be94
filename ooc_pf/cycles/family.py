"""Problems whose rows are cycles of a graph: how a run is built, stored, loaded and verified."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.family import Given, Options, Session, Size
from ..engine.limits import Limits, check_seed, check_tol
from ..engine.problem import FeasiblePoint
from ..engine.rows import RowBlock
from ..engine.store import ConstraintStore, read_blocks
from ..errors import InputError
from ..storage.arrays import digest, label_marks, open_array, write_array
from ..storage.memory import AUTO, Budget
from ..storage.records import check_fields, fits, read_record, require
from ..storage.vectors import Pool, Vector, flat, write_vector
from ..storage.workspace import Workspace, create_workspace
from . import settings as numbers
from .budget import fit_to_disk, share_out
from .check import CheckAnswer, verify_cycles
from .disk_layout import build_external_graph
from .graph import Graph
from .inputs import Edges, load_edges, read_edges, read_weights
from .plan import CyclePlan, CycleState, Rounder
from .point import CyclePoint
from .program import CycleProgram, MakeProgram
from .schedule import STALLED, CycleSchedule
from .search import NumbaOracle
from .search_dask import ClusterOracle
from .search_igraph import IgraphOracle
from .settings import Settings
from .stored import check_feasible, load_feasible, load_point, load_program, stored_weights

# Options that every run has, as the manifest keeps them; of the seed only that it is there.
STORED = {"tol": float, "oracle": str, "seed": object, "external": bool, "settings": dict, "weights": str | None}


@dataclass(frozen=True)
class CycleData:
    """A graph with values on its edges, weights or None, and labels of the nodes that a caller gave, or None."""

    edges: Edges
    weights: np.ndarray | Vector | None = None
    labels: np.ndarray | None = None

    @property
    def size(self) -> Size:
        return Size(self.edges.nodes, len(self.edges.u))

    @property
    def fingerprint(self) -> str:
        edges = self.edges
        numbers = edges.u.whole, edges.v.whole, edges.value.whole, np.array(edges.nodes)
        return digest(*numbers, *label_marks(self.labels))

    def restore(self, point: FeasiblePoint) -> Any:
        return self.edges.restore(flat(point))

    def notes(self) -> dict[str, Any]:
        return {} if self.edges.zeros is None else {"zeros": self.edges.zeros}


@dataclass(frozen=True)
class CycleFamily:
    """A problem over cycles.

    Attributes
    ----------
    name, kind : str
        What manifests call it, and the kind of workspace it works on.
    program : options -> MakeProgram
        Its mathematics.
    settings : (options, disk) -> Settings or None
        How its oracle goes about it in memory, or laid out for disk; None: that cannot be.
    finish, fields
        As `engine.family.Family` has them.
    stored : dict
        The kinds of its options in a manifest, beside those that every such problem has.
    sound : options -> bool
        Whether a run can have these.
    check_answer : function or None
        Recomputes what ``finish`` made, for `verify`.
    rounder : options -> Rounder or None
        Who makes clusters on the way.
    ratio : options -> float or None
        How well these must be proven to end a run.
    free
        As `engine.family.Family` has it.
    """

    name: str
    kind: str
    program: Callable[[Options], MakeProgram]
    settings: Callable[[Options, bool], Settings | None]
    finish: Callable[[CycleData, CycleState, Options, str, np.ndarray], dict[str, Any]] | None = None
    check_answer: CheckAnswer | None = None
    fields: dict[str, Any] = field(default_factory=dict)

    stored: dict[str, Any] = field(default_factory=dict)
    sound: Callable[[Options], bool] = lambda options: True
    rounder: Callable[[Options], Rounder | None] = lambda options: None
    ratio: Callable[[Options], float | None] = lambda options: None
    free: tuple[str, ...] = ()

    engine = None
    keyed = None
    resumable = True
    noun = "graph"

    # -- what is asked for --------------------------------------------------------------------------------------------

    def check(self, options: Options, limits: Limits) -> Options:
        check_tol(options["tol"])
        check_seed(options["seed"])
        if options["oracle"] not in ("numba", "igraph"):
            raise InputError(f"oracle must be 'numba' or 'igraph', found {options['oracle']!r}")
        if limits.client is not None and options["oracle"] != "numba":
            raise InputError("client= needs oracle='numba'")
        return {**options, "tol": float(options["tol"]), "seed": int(options["seed"])}

    def check_held(self, workspace: Workspace) -> None:
        options = workspace.manifest["problem"]["options"]
        check_fields(options, {**STORED, **self.stored}, workspace.record, "problem.options.")
        require(options["oracle"] in ("numba", "igraph"), workspace.record, f"oracle is {options['oracle']!r}")
        in_memory = options["oracle"] == "igraph" or self.settings(options, True) is None
        sound = self.sound(options) and not (options["external"] and in_memory)
        require(sound, workspace.record, "the options are none that a run has")
        self._stored_settings(workspace)
        answer = workspace.answer if self.check_answer is not None else None
        if answer is not None:
            told = ("lp_lower_bound", "cost") if (answer / "labels").exists() else ("lp_lower_bound",)
            check_fields(workspace.manifest["facts"], dict.fromkeys(told, float), workspace.record, "facts.")

    def _stored_settings(self, workspace: Workspace) -> Settings:
        return Settings.read(workspace.manifest["problem"]["options"]["settings"], workspace.record)

    def settle(self, options: Options, size: Size, held: Options | None, limits: Limits, *, disk: bool) -> Options:
        external = options["external"]
        if external and not disk:
            raise InputError("external=True lays the graph out on disk; name a workspace= for it")
        if external is None and held is not None:
            external = held.get("external")
        on_disk = self.settings(options, True) if options["oracle"] == "numba" else None
        if external is None:
            external = disk and size.edges > numbers.EXTERNAL_EDGES and on_disk is not None
        chosen = on_disk if external else self.settings(options, False)
        if chosen is None:
            raise InputError(
                "external=True is for explicit graphs and the numba oracle; complete graphs (base) and igraph work in "
                "memory"
            )
        if external:
            chosen = fit_to_disk(chosen, self._memory(limits, external=True), size.nodes, size.edges)
        # Settings are not the user's: a run keeps those it began with, whatever this release would choose.
        kept = (held or {}).get("settings") or {}
        stored = kept if "stages" in kept else chosen.stored()  # those of a table are refused later, by name
        return {**options, "external": bool(external), "settings": stored}

    def needs_disk(self, options: Options) -> bool:
        return self.processes(options)

    def processes(self, options: Options) -> bool:
        return options["oracle"] == "igraph"

    def budget(self, given: Given, size: Size, options: Options, limits: Limits, workers: int, *, disk: bool) -> Budget:
        memory = self._memory(limits, external=options["external"])
        return share_out(memory, nodes=size.nodes, edges=size.edges, workers=workers, options=options)

    def _memory(self, limits: Limits, *, external: bool) -> Any:
        """What is laid out for disk fills the memory there is, and no more, whether or not a budget is named."""
        return AUTO if limits.memory is None and external else limits.memory

    # -- input --------------------------------------------------------------------------------------------------------

    def read(self, given: Given) -> CycleData:
        edges = read_edges(given.source, self.kind, given.labels)
        return CycleData(edges, read_weights((given.extras or {}).get("weights"), edges), given.labels)

    def create(self, path: Any, data: CycleData) -> None:
        edges, source = data.edges, {"file": None, "digest": data.fingerprint}
        ends, labels = (edges.u.whole, edges.v.whole), data.labels
        labels = np.arange(edges.nodes) if labels is None else labels
        create_workspace(path, *ends, edges.value.whole, labels, kind=self.kind, source=source)

    def open(self, workspace: Workspace, given: Given, options: Options, pool: Pool) -> CycleData:
        edges = load_edges(workspace, pool)
        if given.extras is None:
            return CycleData(edges, stored_weights(workspace, pool))
        return CycleData(edges, read_weights(given.extras.get("weights"), edges))

    def marks(self, data: CycleData, options: Options) -> Options:
        return {"weights": None if data.weights is None else digest(data.weights)}

    # -- a run --------------------------------------------------------------------------------------------------------

    def build(self, data: CycleData, options: Options, session: Session) -> CycleProgram:
        return self.program(options)(data.edges, data.weights, None, session.pool).checked()

    def lay_out(self, data: CycleData, options: Options, session: Session) -> CycleProgram:
        workspace, graph = session.workspace, None
        assert workspace is not None
        if options["external"]:
            edges, signed = data.edges, self.kind == "signed"
            values = edges.u, edges.v, edges.value
            build_external_graph(workspace.graph, *values, edges.nodes, signed=signed, memory=session.budget.build)
            graph = Graph.read(workspace.graph, session.pool)
        program = self.program(options)(data.edges, data.weights, graph, session.pool).checked()
        if graph is None:
            program.graph.write(workspace.graph)
        if data.weights is not None:
            write_array(workspace.graph, "weight", data.weights)
        return program

    def load(self, data: CycleData, options: Options, session: Session) -> CycleProgram:
        assert session.workspace is not None
        return load_program(session.workspace, self.program(options), data.edges, session.pool)

    def start(self, program: CycleProgram, options: Options, pool: Pool) -> tuple[CyclePoint, CyclePlan]:
        parts = (part for _, part in program.target.spans())
        y = Vector.filled(parts, program.size, np.float64, pool)
        return CyclePoint(program, y, pool), CyclePlan(options["settings"]["stages"][0][0])

    def load_point(self, program: CycleProgram, workspace: Workspace, pool: Pool) -> CyclePoint:
        return load_point(program, workspace, pool)

    def load_plan(self, workspace: Workspace) -> CyclePlan:
        plan = read_record(CyclePlan, workspace.manifest["plan"], workspace.record, "plan")
        names = [stage.name for stage in self._stored_settings(workspace).stages]
        require(plan.stage in names, workspace.record, f"plan.stage is {plan.stage!r}")
        rated = set(plan.rates) <= set(names) and all(fits(rate, float) for rate in plan.rates.values())
        require(rated, workspace.record, "plan.rates are not of its stages")
        rates = plan.rates.values()
        least = min(plan.wave, plan.idle, plan.rounded, plan.again, plan.worst, plan.last, plan.cold, plan.work, *rates)
        require(least >= 0, workspace.record, "the plan has numbers below zero")
        cooled = plan.stage == numbers.HOT and not (workspace.generation / "heat").exists()
        require(not cooled, workspace.record, f"plan.stage is {plan.stage!r}, and {workspace.generation} has no heat")
        require(plan.crowded >= 0, workspace.record, f"plan.crowded is {plan.crowded!r}")
        # Asked again, so tried again.
        return replace(plan, crowded=0) if workspace.manifest["status"] == STALLED else plan

    def load_feasible(self, program: CycleProgram, group: Path, pool: Pool) -> Vector:
        return load_feasible(program, group, pool)

    def new_store(self, program: CycleProgram, budget: Budget, pool: Pool) -> ConstraintStore:
        return ConstraintStore(budget.rows, pool)

    def load_rows(self, store: ConstraintStore, point: CyclePoint, group: Path) -> ConstraintStore:
        return store.read(group, point.y.size)

    def write(self, group: Path, state: CycleState) -> None:
        point = state.point
        for name, vector in {"y": point.y, **point.program.changed()}.items():
            write_vector(group, name, vector)
        for name, array in (("heat", point.heat), ("labels", point.labels)):
            if array is not None:
                write_array(group, name, array)
        state.rows.write(group / "rows")

    def problem(self, program: CycleProgram, options: Options, session: Session) -> CycleSchedule:
        return CycleSchedule(
            program=program,
            oracle=self._oracle(program, options, session),
            monitor=session.monitor,
            settings=Settings.read(options["settings"]),
            tol=options["tol"],
            seed=options["seed"],
            threads=None if self.processes(options) else session.threads,
            workers=session.workers,
            most_pairs=session.budget.pairs,
            workspace=session.workspace,
            rounder=self.rounder(options),
            ratio=self.ratio(options),
        )

    def _oracle(self, program: CycleProgram, options: Options, session: Session) -> Any:
        rule, workspace = (program.closing, program.rhs), session.workspace
        if self.processes(options):
            assert workspace is not None
            return IgraphOracle(workspace.graph, rule, session.threads)
        here = NumbaOracle(
            program.graph,
            session.threads,
            session.workers,
            session.budget.slots,
            session.pool,
            session.budget.lanes,
            session.budget.held,
        )
        if session.client is None:
            return here
        assert workspace is not None
        return ClusterOracle(here, workspace, rule, session.client, session.budget)

    # -- the answer ---------------------------------------------------------------------------------------------------

    def measured(self, violation: float) -> dict[str, Any]:
        return {}

    def blocks(self, workspace: Workspace) -> Iterator[RowBlock]:
        group = workspace.generation
        return read_blocks(group / "rows", open_array(group, "y").shape[0])

    def verify(self, workspace: Workspace, *, oracle: str, workers: int | None, memory: Any) -> dict[str, Any]:
        options = workspace.manifest["problem"]["options"]
        check_feasible(workspace, complete=bool(options.get("base")))
        make = self.program(options)
        return verify_cycles(
            workspace, make, oracle=oracle, workers=workers, memory=memory, check_answer=self.check_answer
        )
