"""The program over cycles that a workspace holds, and its iterate."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ..errors import WorkspaceError
from ..storage.arrays import open_array, read_array
from ..storage.vectors import Pool, Vector, check_vector, read_vector
from ..storage.workspace import Workspace
from .graph import Graph
from .inputs import Edges
from .point import CyclePoint
from .program import CycleProgram, MakeProgram


def stored_weights(workspace: Workspace, pool: Pool) -> Vector | None:
    """The weights by edge, where there are any."""
    if not (workspace.graph / "weight").exists():
        return None
    weights = read_vector(workspace.graph, "weight", pool)
    check_vector(workspace.graph, "weight", weights, workspace.manifest["graph"]["edges"])
    if not all((part > 0).all() for _, part in weights.spans()):
        raise WorkspaceError(f"{workspace.graph}: weight is damaged; `ooc-pf solve --restart` starts again")
    return weights


def load_program(workspace: Workspace, make: MakeProgram, edges: Edges, pool: Pool) -> CycleProgram:
    """The program a workspace was prepared for; refuses numbers that no run begins with."""
    graph = Graph.read(workspace.graph, pool).check(len(edges.u), workspace.graph)
    return make(edges, stored_weights(workspace, pool), graph, pool).checked()


def load_feasible(program: CycleProgram, group: Path, pool: Pool) -> Vector:
    """The committed feasible point; that of a complete graph may have pairs beyond the listed ones."""
    x = read_vector(group, "x", pool)
    check_vector(group, "x", x, max(x.size, program.size) if program.pairs else program.size)
    return x


def check_feasible(workspace: Workspace, *, complete: bool) -> None:
    """Refuse a feasible point without a number for every edge; of a complete graph it may have more."""
    group, edges = workspace.feasible, workspace.manifest["graph"]["edges"]
    found = edges if group is None else open_array(group, "x", np.float64).shape[0]
    if found < edges or (found > edges and not complete):
        raise WorkspaceError(f"{group}: x is damaged: it has {found} numbers for {edges} edges")


def load_point(program: CycleProgram, workspace: Workspace, pool: Pool) -> CyclePoint:
    """The committed iterate, with the program as it was: the pairs that have a variable, around the same centre."""
    group = workspace.generation
    y = read_vector(group, "y", pool)
    if program.pairs:
        program = program.with_pairs(_stored_pairs(group, program.graph.nodes))
    if program.step is not None:
        program = _stored_step(program, group, pool)
    for name, vector in (("y", y), ("target", program.target)):
        check_vector(group, name, vector, program.size)
    nodes = workspace.manifest["graph"]["nodes"]
    heat, labels = _stored_heat(group, len(program.graph.sources)), _stored_labels(group, nodes)
    return CyclePoint(program, y, pool, heat, labels)


def _stored_step(program: CycleProgram, group: Path, pool: Pool) -> CycleProgram:
    """The proximal step of a linear program that was under way."""
    target = read_vector(group, "target", pool)
    if not (group / "step").exists():  # of a release in which all steps had one length
        return replace(program, target=target)
    step = read_array(group, "step", dtype=np.float64)
    sound = step.shape == (1,) and -np.inf < step[0] < 0.0
    # Of a complete graph all steps have one length: pairs that get a variable later have that of the program.
    if not sound or (program.pairs is not None and step[0] != program.step):
        raise WorkspaceError(f"{group}: the step is damaged; `ooc-pf solve --restart` starts again")
    return (
        replace(program, target=target) if step[0] == program.step else program.stretched(float(step[0]), target, pool)
    )


def _stored_heat(group: Path, sources: int) -> np.ndarray | None:
    """The violation expected from each source; infinite for one never searched."""
    if not (group / "heat").exists():
        return None
    heat = read_array(group, "heat", dtype=np.float64)
    if len(heat) != sources or np.isnan(heat).any() or (heat < 0).any():
        raise WorkspaceError(f"{group}: the heat of the sources is damaged; `ooc-pf solve --restart` starts again")
    return heat


def _stored_labels(group: Path, nodes: int) -> np.ndarray | None:
    """The best clusters known."""
    if not (group / "labels").exists():
        return None
    labels = read_array(group, "labels", dtype=np.int32)
    if labels.shape != (nodes,) or (labels < 0).any() or (labels >= nodes).any():
        raise WorkspaceError(f"{group}: the labels are damaged; `ooc-pf solve --restart` starts again")
    return labels


def _stored_pairs(group: Path, nodes: int) -> np.ndarray:
    pairs = read_array(group, "pairs", dtype=np.int32)
    if len(pairs) % 2 == 0:
        pairs = pairs.reshape(-1, 2)
        if np.all((pairs[:, 0] >= 0) & (pairs[:, 0] < pairs[:, 1]) & (pairs[:, 1] < nodes)):
            return pairs
    raise WorkspaceError(f"{group}: the pairs are damaged; `ooc-pf solve --restart` starts again")
