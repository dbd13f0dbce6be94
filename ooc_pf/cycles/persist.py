"""A run on a workspace: its program and state, read and committed."""

import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.certificate import Certificate, relative_gap
from ..engine.loop import Commit
from ..engine.problem import Problem, Program, State
from ..engine.result import CLUSTERING, KEYED, Result
from ..engine.store import ConstraintStore, read_blocks
from ..errors import WorkspaceError
from ..storage.arrays import open_array, read_array, read_labels
from ..storage.vectors import Pool, Vector, check_vector, read_vector, spans, write_vector
from ..storage.workspace import Workspace, flush
from .graph import Graph
from .inputs import Edges
from .program import CycleProgram

LARGE = (np.ndarray, Vector)
Write = Callable[[Path, State], None]
MakeProgram = Callable[[Edges, Any, Graph | None, Pool], CycleProgram]


def load_edges(workspace: Workspace, pool: Pool) -> Edges:
    """The edges of a workspace; vectors over them are given back as they are."""
    nodes, edges = workspace.manifest["graph"]["nodes"], workspace.manifest["graph"]["edges"]
    u, v, value = (read_vector(workspace.edges, field, pool) for field in ("u", "v", "value"))
    sound = len(u) == len(v) == len(value) == edges
    if sound:
        for a, b, w in spans(u, v, value):
            sound = sound and bool(np.all((a >= 0) & (a < b) & (b < nodes)) and np.isfinite(w).all())
    if not sound:
        raise WorkspaceError(f"{workspace.edges} does not hold the edges it should; convert them again")
    return Edges(u, v, value, nodes, lambda x: x)


def load_program(workspace: Workspace, make: MakeProgram, edges: Edges, pool: Pool) -> CycleProgram:
    """The program a workspace was prepared for."""
    stored = workspace.graph / "weight"
    weights = read_vector(workspace.graph, "weight", pool) if stored.exists() else None
    return make(edges, weights, Graph.read(workspace.graph, pool), pool)


def load_state(workspace: Workspace, program: Program, y: Vector, rows: ConstraintStore, pool: Pool) -> State:
    """The committed state of a program and its point, with the rows in ``rows``."""
    manifest = workspace.manifest
    certificate = manifest["certificate"]
    return State(
        program=program,
        y=y,
        rows=rows.read(workspace.generation / "rows", y.size),
        plan=manifest["plan"],
        pool=pool,
        iteration=manifest["iteration"],
        feasible=read_vector(workspace.feasible, "x", pool) if workspace.feasible else None,
        objective=math.inf if manifest["objective"] is None else manifest["objective"],
        certificate=certificate and Certificate(**{k: math.inf if v is None else v for k, v in certificate.items()}),
        heat=read_array(workspace.generation, "heat") if (workspace.generation / "heat").exists() else None,
    )


def load_point(workspace: Workspace, program: CycleProgram, pool: Pool) -> tuple[CycleProgram, Vector]:
    """The committed y, and the program as it was: with the pairs that have a variable, around the same centre."""
    group = workspace.generation
    y = read_vector(group, "y", pool)
    if program.pairs:
        pairs = read_array(group, "pairs").reshape(-1, 2)
        nodes = program.graph.nodes
        if not np.all((pairs[:, 0] >= 0) & (pairs[:, 0] < pairs[:, 1]) & (pairs[:, 1] < nodes)):
            raise WorkspaceError(f"{group}: the pairs are damaged; `ooc-pf solve --restart` starts again")
        program = program.with_pairs(pairs)
    if program.step is not None:
        program = replace(program, target=read_vector(group, "target", pool))
    for name, vector in (("y", y), ("target", program.target)):
        check_vector(group, name, vector, program.size)
    return program, y


def write_generation(group: Path, state: State) -> None:
    """Write what a run goes on from."""
    for name, vector in {"y": state.y, **state.program.changed()}.items():
        write_vector(group, name, vector)
    if state.heat is not None:
        write_vector(group, "heat", Vector.of(state.heat))
    state.rows.write(group / "rows")


def discard_run(workspace: Workspace) -> None:
    """Give up what the workspace holds: until `commit_start` there is nothing to resume."""
    workspace.commit(problem=None, status="converted", feasible=0, answer=0, iteration=0, history_bytes=0)
    shutil.rmtree(workspace.graph, ignore_errors=True)


def commit_start(
    workspace: Workspace, wanted: dict[str, Any], state: State, bound: float, write: Write = write_generation
) -> None:
    """Write the state a run begins with: the first generation."""
    flush(workspace.graph)
    workspace.commit(
        write_generation=lambda group: write(group, state),
        problem=wanted,
        status="running",
        plan=state.plan,
        certificate=None,
        objective=None,
        closing=None,
        lower_bound=bound,
        n_active=0,
    )


def committer(workspace: Workspace, state: State, write: Write = write_generation) -> Commit:
    """The engine's commit for a workspace; ``write(group, state)`` fills a generation."""
    written, heat = state.feasible, state.heat

    def commit(state: State, record: dict[str, Any], status: str) -> None:
        nonlocal written, heat
        fresh = state.feasible if state.feasible is not written else None
        # Without a sweep neither y nor the duals moved: the generation still says it all.
        moved = record.get("sweeps") or record["added"] or state.heat is not heat
        workspace.commit(
            record,
            write_generation=(lambda group: write(group, state)) if moved else None,
            write_feasible=fresh and (lambda group: write_vector(group, "x", fresh)),
            status=status,
            iteration=state.iteration,
            plan=state.plan,
            certificate=_plain(state.certificate),
            objective=state.objective if math.isfinite(state.objective) else None,
            closing=None,
            answer=0,
            lower_bound=record["lower_bound"],
            n_active=len(state.rows),
        )
        written, heat = state.feasible, state.heat

    return commit


def commit_stop(
    workspace: Workspace, problem: Problem, state: State, status: str, certificate: Certificate | None
) -> None:
    """Record why the run stopped and the feasible point it stopped with; the state to resume from stays as it was."""
    workspace.commit(
        write_feasible=lambda group: write_vector(group, "x", state.feasible),
        status=status,
        objective=state.objective,
        lower_bound=problem.bound(state),
        closing=_plain(certificate),
    )


def commit_answer(workspace: Workspace, made: dict[str, Any]) -> None:
    """Keep what a problem made of its point: vectors and arrays as such, the rest as facts."""
    vectors = {k: v if isinstance(v, Vector) else Vector.of(v) for k, v in made.items() if isinstance(v, LARGE)}
    facts = {name: value for name, value in made.items() if name not in vectors}

    def write(group: Path) -> None:
        for name, vector in vectors.items():
            write_vector(group, name, vector)

    workspace.commit(write_answer=write, facts=facts)


def _plain(certificate: Certificate | None) -> dict[str, float] | None:
    if certificate is None:
        return None
    finite = {k: v if math.isfinite(v) else None for k, v in certificate.as_dict().items()}
    return {k: v for k, v in finite.items() if k != "gap"}


def _at_once(read: Callable[[], Any]) -> Callable[[], Any]:
    value = read()
    return lambda: value


def open_result(workspace: Workspace) -> Result:
    """What the workspace has to show so far; x and labels of a graph laid out for disk are read when asked for."""
    manifest, outcome = workspace.manifest, workspace.outcome
    checked = manifest["closing"] or manifest["certificate"]
    made = None
    if workspace.answer:
        labels = read_array(outcome, "labels") if (outcome / "labels").exists() else None
        made = {**CLUSTERING, **manifest["facts"], "labels": labels}
    later: Callable = _at_once if not manifest["problem"]["options"].get("external") else lambda read: read
    return Result(
        problem=manifest["problem"]["name"],
        made=made,
        read_x=later(lambda: read_array(outcome, "x")),
        read_nodes=later(lambda: read_labels(workspace.edges) if workspace.edges.exists() else None),
        keyed=manifest["graph"]["kind"] if manifest["graph"]["kind"] in KEYED else None,
        objective=manifest["objective"],
        lower_bound=manifest["lower_bound"],
        gap=relative_gap(manifest["objective"], manifest["lower_bound"]),
        violation=checked["violation"] if checked and checked["violation"] is not None else math.inf,
        status=manifest["status"],
        n_iter=manifest["iteration"],
        n_active=manifest["n_active"],
        history=workspace.history(),
        blocks=lambda: read_blocks(workspace.generation / "rows", open_array(workspace.generation, "y").shape[0]),
        workspace=workspace.name,
    )
