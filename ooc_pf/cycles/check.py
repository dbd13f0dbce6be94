"""Check a workspace against itself: every chunk, every row, the invariant, and the certificate by a second engine."""

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.check import TOLERANCE, agree, check_certificate, claimed_now, require
from ..engine.parallel import count_workers, worker_pool
from ..engine.rows import Rows
from ..engine.store import ConstraintStore
from ..kernels.paths import UNLIMITED
from ..storage.arrays import read_parts
from ..storage.vectors import Pool, Vector, read_vector, spans
from ..storage.workspace import Workspace
from . import settings as numbers
from .budget import share_out
from .disk_layout import build_external_graph
from .graph import Graph
from .inputs import Edges, load_edges
from .passes import freeze, look
from .point import CyclePoint
from .program import CycleProgram, MakeProgram, nonnegative
from .search import NO_PAIRS, Found, NumbaOracle, SearchRules, all_sources
from .search_igraph import IgraphOracle
from .stored import load_point, load_program
from .valid import are_valid

# (workspace, edges, iterate, rows, feasible point) -> what was recomputed
CheckAnswer = Callable[[Workspace, Edges, CyclePoint, ConstraintStore, Vector], dict[str, Any]]


def verify_cycles(
    workspace: Workspace,
    make: MakeProgram,
    *,
    oracle: str,
    workers: int | None,
    memory: Any,
    check_answer: CheckAnswer | None = None,
) -> dict[str, Any]:
    """Recompute all that the manifest claims; raises WorkspaceError at the first thing that does not hold.

    Reading a chunk checks its checksum. The rows must be cycles of the graph, y must follow from the targets and the
    duals, the lower bound must be the dual value, and the largest violation of the iterate the one of its certificate.
    The stored point must be feasible with the stored objective. What the problem made of it is for ``check_answer``.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        check = _Check(workspace, make, oracle, workers, memory, Path(folder))
        stack.callback(check.pool.close)
        return check.report(check_answer)


class _Check:
    """One verification, with what it holds."""

    def __init__(
        self, workspace: Workspace, make: MakeProgram, oracle: str, workers: int | None, memory: Any, folder: Path
    ):
        self.workspace, self.make, self.oracle, self.folder = workspace, make, oracle, folder
        # One igraph worker is this process itself: no script needs a guard for that.
        self.alone = oracle == "igraph" and workers in (None, 1)
        self.workers = 1 if self.alone else count_workers(workers)
        facts, options = workspace.manifest["graph"], workspace.manifest["problem"]["options"]
        self.external = bool(options["external"])
        options = {**options, "oracle": oracle, "external": self.external and oracle == "numba"}
        self.budget = share_out(
            memory, nodes=facts["nodes"], edges=facts["edges"], workers=self.workers, options=options
        )
        self.pool = Pool(self.budget.vectors, folder)

    def report(self, check_answer: CheckAnswer | None) -> dict[str, Any]:
        workspace, manifest = self.workspace, self.workspace.manifest
        edges = load_edges(workspace, self.pool)
        listed = load_program(workspace, self.make, edges, self.pool)
        require(workspace, self._same_graph(edges, listed.graph), "graph.zarr does not belong to edges.zarr")
        iterate = load_point(listed, workspace, self.pool)
        program, y = iterate.program, iterate.y
        rows = ConstraintStore(self.budget.rows, self.pool).read(workspace.generation / "rows", y.size)
        for block in rows.blocks():
            require(workspace, are_valid(block, edges, program), "a stored row is not a cycle that its problem has")
            require(workspace, np.array_equal(block.rows.keys(), block.key), "a stored row does not fit its key")
        drift, scale = self._drift(program, rows, y), program.magnitude
        require(workspace, drift <= TOLERANCE * scale, f"x does not follow from the duals: they differ by {drift:.2e}")
        report = {"drift": drift, "rows": len(rows), "lower_bound": iterate.bound(rows)}
        agree(workspace, report["lower_bound"], manifest["lower_bound"], "lower bound", program.worth)
        agree(workspace, len(rows), manifest["n_active"], "rows remembered")
        violation = self._violation_of(program, y) if claimed_now(manifest) is not None else None
        coarse = manifest["problem"]["options"]["tol"] >= numbers.COARSE_TOLERANCE
        excess = numbers.COARSE_ERROR * program.scale if coarse else 0.0
        check_certificate(workspace, violation=violation, scale=program.scale, worth=program.worth, excess=excess)
        if workspace.feasible:
            point = read_vector(workspace.feasible, "x", self.pool)
            report |= self._check_point(listed, point, scale)
            if workspace.answer and check_answer is not None:
                report |= check_answer(workspace, edges, iterate, rows, point)
        return report

    def _violation_of(self, program: CycleProgram, y: Vector) -> float:
        """Largest violation of a row at the iterate."""
        _, listed, unlisted = self._measure(program, y, (self.workspace.generation, "y"))
        return max(listed, unlisted)

    def _check_point(self, listed: CycleProgram, point: Vector, scale: float) -> dict[str, float]:
        workspace = self.workspace
        more = np.zeros((point.size - listed.size, 2), np.int32)  # what unlisted pairs pay depends on their x alone
        objective = (listed.with_pairs(more) if len(more) else listed).value(point)
        agree(workspace, objective, workspace.manifest["objective"], "objective", listed.worth)
        if len(more):
            point = Vector.of(point.whole[: listed.size])
        below = max((0.0, *(float(-part.min()) for _, part in point.spans())))
        # Unlisted pairs are not violated here: they have whatever length their distance leaves, and pay for it.
        least, violation, _ = self._measure(listed, point, (workspace.feasible, "x"))
        violation = max(below, violation)
        require(
            workspace,
            least <= objective + TOLERANCE * max(abs(least), listed.worth),
            f"the pairs that are not listed bring the objective to {least!r}",
        )
        require(
            workspace,
            violation <= TOLERANCE * scale,
            f"the stored point is not feasible: a row is violated by {violation:.2e}",
        )
        return {"objective": objective, "violation_of_x": violation}

    def _same_graph(self, edges: Edges, stored: Graph) -> bool:
        """Whether the stored graph is the one that the edges give, laid out once more."""
        if not self.external:
            again = self.make(edges, None, None, self.pool).graph
            return all(_same(getattr(stored, name), getattr(again, name)) for name in vars(again))
        folder, signed = self.folder / "graph", self.workspace.manifest["graph"]["kind"] == "signed"
        build_external_graph(
            folder, edges.u, edges.v, edges.value, edges.nodes, signed=signed, memory=self.budget.build
        )
        parts = (
            (read_parts(self.workspace.graph, field.name), read_parts(folder, field.name)) for field in fields(Graph)
        )
        nothing = np.empty(0)  # where the other one has more
        together = (pair for one, other in parts for pair in itertools.zip_longest(one, other, fillvalue=nothing))
        return all(np.array_equal(a, b) for a, b in together)

    def _drift(self, program: CycleProgram, rows: ConstraintStore, y: Vector) -> float:
        again = Vector(y.size, pool=self.pool)
        program.rebuild(((block, block.dual) for block in rows.blocks()), again)
        drift = max((float(np.abs(a - b).max()) for a, b in spans(y, again)), default=0.0)
        again.close()
        return drift

    def _measure(self, program: CycleProgram, point: Vector, address: Any) -> tuple[float, float, float]:
        """Objective, and largest violation of listed and of unlisted pairs, at max(point, 0), by a complete search.

        In a complete graph the unlisted pairs follow from the listed ones: each pays what its distance asks for.
        """
        frozen = freeze(program, point, address)
        processes = self.oracle == "igraph"
        with contextlib.nullcontext() if self.alone else worker_pool(self.workers, processes=processes) as workers:
            engine: Any = (
                IgraphOracle(self.workspace.graph, (program.closing, program.rhs), workers)
                if processes
                else NumbaOracle(
                    program.graph,
                    workers,
                    self.workers,
                    self.budget.slots,
                    self.pool,
                    self.budget.lanes,
                    self.budget.held,
                )
            )
            rules, stop = SearchRules(hops=UNLIMITED, keep_paths=1, slack=program.slack), np.zeros(1, np.uint8)
            closed = nonnegative(point, self.pool)
            batches = engine.find(frozen, all_sources(program.graph), rules=rules, tick=lambda: True, stop=stop)
            unlisted = _Unlisted(program, batches)
            worst = look(program, point, unlisted.taken_out(), 0, closed).worst
        return program.value(point) + unlisted.price, worst, unlisted.worst


class _Unlisted:
    """What the pairs of a complete graph that are not listed pay, added up instead of kept."""

    def __init__(self, program: CycleProgram, batches: Iterator[Found]):
        self._program, self._batches = program, batches
        self.price = self.worst = 0.0

    def taken_out(self) -> Iterator[Found]:
        """What was found about listed pairs."""
        for found in self._batches:
            listed = found.edge >= 0
            if not listed.all():
                reach = found.reach[~listed]
                self.price += self._program.price_unlisted(self._program.within(reach))
                self.worst = max(self.worst, float((self._program.beyond - reach).max()))
            none = np.empty(0)
            yield replace(
                found,
                rows=Rows.empty(),
                violation=none,
                pairs=NO_PAIRS,
                edge=found.edge[listed],
                reach=found.reach[listed],
            )


def _same(one: np.ndarray | Vector, other: np.ndarray | Vector) -> bool:
    one, other = (each.whole if isinstance(each, Vector) else each for each in (one, other))
    return np.array_equal(one, other)
