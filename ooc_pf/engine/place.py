"""Where the state of a run lives: in memory, or in a workspace from which it can be resumed."""

import math
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import WorkspaceError
from ..storage.arrays import read_array, read_labels
from ..storage.files import remove
from ..storage.vectors import Vector, write_vector
from ..storage.workspace import Workspace
from .certificate import Certificate, relative_gap
from .family import Data, Family, Given, Options, Session, stored_certificate
from .problem import FeasiblePoint, Problem, State
from .result import Result

WORTH = 20.0  # a commit is made when the time since the last one is this many times what that one took

AnyState = State[Any, Any, Any]
AnyProblem = Problem[Any, Any, Any]


def first_state(family: Family, given: Given, program: Any, data: Data, options: Options, session: Session) -> AnyState:
    """The state a run begins with."""
    point, plan = family.start(program, options, session.pool)
    state = State(point, family.new_store(program, session.budget, session.pool), plan, session.pool)
    if given.begin is not None:
        given.begin(state, program, data, options, session)
    return state


class Memory:
    """A run that leaves nothing behind but its result."""

    def __init__(self, family: Family, given: Given, data: Data, options: Options, session: Session):
        self.family, self.given, self.data, self.options, self.session = family, given, data, options, session

    def prepare(self) -> Any:
        """The program."""
        return self.family.build(self.data, self.options, self.session)

    def load(self, program: Any, problem: AnyProblem) -> AnyState:
        """The state to go on from."""
        return first_state(self.family, self.given, program, self.data, self.options, self.session)

    def commit(self, state: AnyState, record: dict[str, Any], status: str) -> None:
        """Nothing is kept."""

    def conclude(self, program: Any, problem: AnyProblem, state: AnyState, status: str) -> Result:
        """The result of a run that ended with this status."""
        certificate = problem.close(state, status)
        made: dict[str, Any] = {"x": state.feasible}
        if self.family.finish is not None:
            made = self.family.finish(self.data, state, self.options, status, self.session.monitor.stop)
        x, bound = made.pop("x"), problem.bound(state)
        if state.history and state.whole:
            bound = state.history[-1]["lower_bound"]
        violation = certificate.violation if certificate else math.inf
        return Result(
            problem=self.family.name,
            made={**self.family.fields, **made, **self.family.measured(violation), **self.data.notes()},
            read_x=lambda: self.data.restore(x),
            objective=state.objective,
            lower_bound=bound,
            gap=relative_gap(state.objective, bound, certificate.worth if certificate else 0.0),
            violation=violation,
            status=status,
            n_iter=state.iteration,
            n_active=len(state.rows),
            history=state.history,
            blocks=state.rows.blocks,
            keyed=self.family.keyed,
        )


class OnDisk:
    """A run whose state is in a workspace.

    ``data`` is the input if the caller handed it over, None if it was named by the path of the workspace.
    """

    def __init__(
        self, family: Family, given: Given, data: Data | None, options: Options, session: Session, *, restart: bool
    ):
        assert session.workspace is not None
        self.family, self.given, self.options, self.session = family, given, options, session
        self.workspace, self._restart, self._own = session.workspace, restart, data
        self.data = family.open(self.workspace, given, options, session.pool)
        self._fresh = False  # whether the first generation is still to be written
        self._written: FeasiblePoint | None = None  # the feasible point that the workspace has
        self._waiting: list[dict[str, Any]] = []  # records of iterations that are not committed yet
        self._stage, self._committed, self._cost = "", 0.0, 0.0  # of the last commit: stage, when, seconds it took

    def prepare(self) -> Any:
        """The program: loaded, or written down on the first solve. Refuses a workspace that holds another run."""
        if self._goes_on():
            self.options = self.workspace.manifest["problem"]["options"]
            return self.family.load(self.data, self.options, self.session)
        self.options = self._with_marks()
        if self.given.begin is not None:
            self.given.begin.check()
        discard_run(self.workspace)
        self._fresh = True
        return self.family.lay_out(self.data, self.options, self.session)

    def _goes_on(self) -> bool:
        """Whether this call continues the run in the workspace."""
        held = self.workspace.manifest["problem"]
        if held is None or self._restart:
            return False
        if self.given.extras is None:
            return True
        wanted = self._wanted(self._with_marks())
        # What an earlier release did not ask for is taken as it is given now.
        changed = {n: v for n, v in wanted["options"].items() if n in self.family.free or n not in held["options"]}
        if {**held, "options": {**held["options"], **changed}} != wanted:
            raise WorkspaceError(difference(self.family, self.workspace, held, wanted))
        if held != wanted:
            self.workspace.commit(problem=wanted, status="running")  # what was reached may not be enough now
        return True

    def _with_marks(self) -> Options:
        return {**self.options, **self.family.marks(self.data, self.options)}

    def _wanted(self, options: Options) -> dict[str, Any]:
        return {"name": self.family.name, "options": options, "answers": self.family.finish is not None}

    def load(self, program: Any, problem: AnyProblem) -> AnyState:
        """The committed state."""
        if self._fresh:
            self._commit_start(program, problem)
            self._fresh = False
        workspace, manifest, pool = self.workspace, self.workspace.manifest, self.session.pool
        point = self.family.load_point(program, workspace, pool)
        store = self.family.new_store(program, self.session.budget, pool)
        group = workspace.feasible
        self._written = None if group is None else self.family.load_feasible(program, group, pool)
        rows = self.family.load_rows(store, point, workspace.generation / "rows")
        workspace.check_groups()
        return State(
            point=point,
            rows=rows,
            plan=self.family.load_plan(workspace),
            pool=pool,
            iteration=manifest["iteration"],
            feasible=self._written,
            objective=math.inf if manifest["objective"] is None else manifest["objective"],
            certificate=stored_certificate(workspace, "certificate"),
        )

    def _commit_start(self, program: Any, problem: AnyProblem) -> None:
        """Write the first generation."""
        state = first_state(self.family, self.given, program, self.data, self.options, self.session)
        self.workspace.commit(
            new_graph=True,
            write_generation=lambda group: self.family.write(group, state),
            problem=self._wanted(self.options),
            status="running",
            plan=asdict(state.plan),
            certificate=None,
            objective=None,
            closing=None,
            lower_bound=problem.bound(state),
            n_active=len(state.rows),
        )
        state.point.close()

    def commit(self, state: AnyState, record: dict[str, Any], status: str) -> None:
        """Make an iteration last, or wait with it until that costs little against what would be lost.

        At the end of a stage it is not waited, and where other processes read the point from the workspace.
        """
        self._waiting.append(record)
        ends = status != "running" or state.plan.stage != self._stage
        shared = self.session.client is not None or self.family.processes(self.options)
        spent, worth = time.monotonic() - self._committed, WORTH * self._cost
        if ends or shared or spent >= worth or self.session.monitor.time_left <= worth:
            self._commit(state, status)

    def _commit(self, state: AnyState, status: str) -> None:
        """Make the iterations last that wait for it. What did not change is not written again."""
        began, record, point = time.monotonic(), self._waiting[-1], state.feasible
        fresh = None if point is self._written else point
        self.workspace.commit(
            self._waiting,
            write_generation=(lambda group: self.family.write(group, state)) if state.moved else None,
            write_feasible=None if fresh is None else lambda group: write_vector(group, "x", fresh),
            status=status,
            iteration=state.iteration,
            plan=asdict(state.plan),
            certificate=_plain(state.certificate),
            objective=state.objective if math.isfinite(state.objective) else None,
            closing=None,
            answer=0,
            lower_bound=record["lower_bound"],
            n_active=len(state.rows),
        )
        self._written, state.moved, self._waiting = point, False, []
        self._stage, self._committed = state.plan.stage, time.monotonic()
        self._cost = self._committed - began

    def conclude(self, program: Any, problem: AnyProblem, state: AnyState, status: str) -> Result:
        """Commit how the run ended, and what its problem makes of the point; returns what there is to show."""
        workspace = self.workspace
        if not state.whole:
            self._waiting = []
        elif self._waiting:
            self._commit(state, "running")
        if status == "converged":
            if workspace.manifest["status"] != status:  # a looser tolerance, met without another iteration
                workspace.commit(status=status, closing=None)
        else:
            if not state.whole:
                state = self.load(program, problem)
            self._commit_stop(problem, state, status)
        if self.family.finish is not None and not workspace.answer:
            _commit_answer(
                workspace, self.family.finish(self.data, state, self.options, status, self.session.monitor.stop)
            )
        result, own = open_result(self.family, workspace), self._own
        if own is None:
            return result
        made = {**result.made, **own.notes()}
        return replace(result, made=made, read_x=lambda: own.restore(Vector.of(result.read_x())))

    def _commit_stop(self, problem: AnyProblem, state: AnyState, status: str) -> None:
        """Record why the run stopped and the point it stopped with; the state to resume from stays as it was."""
        certificate, point = problem.close(state, status), state.feasible
        assert point is not None
        self.workspace.commit(
            write_feasible=lambda group: write_vector(group, "x", point),
            status=status,
            answer=0,  # one that is there was made of another point
            objective=state.objective,
            lower_bound=problem.bound(state),
            # One that is not new is of an earlier iterate, and in the manifest already.
            closing=None if certificate is state.certificate else _plain(certificate),
        )


def discard_run(workspace: Workspace) -> None:
    """Give up the run in a workspace: until the next first generation there is nothing to resume."""
    workspace.commit(problem=None, status="converted", feasible=0, answer=0, iteration=0, history_bytes=0)
    remove(workspace.graph)


def difference(family: Family, workspace: Workspace, held: dict[str, Any], wanted: dict[str, Any]) -> str:
    """What to tell someone whose workspace holds a run with other options."""
    then = {"problem": held["name"], **held["options"]}
    now = {"problem": wanted["name"], **wanted["options"]}
    changes = [
        f"{name}: {then.get(name)!r} then, {now[name]!r} now"
        for name in now
        if then.get(name) != now[name] and name not in family.free
    ]
    what = f"{workspace.name} holds progress made with other options ({'; '.join(changes)}). Ways out: "
    if not family.resumable:
        return what + "give those again, or restart=True, which discards it, or another workspace"
    return what + (
        f"`ooc-pf resume {workspace.name}` goes on with the options it has (`--tol` may change there), "
        "`solve --restart` discards its progress (restart=True in Python), or convert into a new workspace"
    )


def _commit_answer(workspace: Workspace, made: dict[str, Any]) -> None:
    """Keep what a problem made of its point: vectors and arrays as such, the rest as facts."""
    large = {name: value for name, value in made.items() if isinstance(value, np.ndarray | Vector)}
    vectors = {name: value if isinstance(value, Vector) else Vector.of(value) for name, value in large.items()}
    facts = {name: value for name, value in made.items() if name not in vectors}

    def write(group: Path) -> None:
        for name, vector in vectors.items():
            write_vector(group, name, vector)

    workspace.commit(write_answer=write, facts=facts)


def _plain(certificate: Certificate | None) -> dict[str, Any] | None:
    """A certificate as the manifest has it: JSON knows no infinity."""
    if certificate is None:
        return None
    return {name: value if math.isfinite(value) else None for name, value in asdict(certificate).items()}


def open_result(family: Family, workspace: Workspace) -> Result:
    """What the workspace has to show so far; x and labels of a graph laid out for disk are read when asked for."""
    manifest, outcome = workspace.manifest, workspace.outcome
    checked = stored_certificate(workspace, "closing") or stored_certificate(workspace, "certificate")
    violation = checked.violation if checked else math.inf
    made = {**family.fields, **(manifest["facts"] if workspace.answer else {}), **family.measured(violation)}
    if (outcome / "labels").exists():
        made["labels"] = read_array(outcome, "labels", dtype=np.int32)
        if len(made["labels"]) != manifest["graph"]["nodes"]:
            raise WorkspaceError(f"{outcome} is damaged: it has not one label for each node")
    result = Result(
        problem=family.name,
        made=made,
        read_x=lambda: read_array(outcome, "x", dtype=np.float64),
        read_nodes=lambda: read_labels(workspace.edges) if family.keyed is None else None,
        keyed=family.keyed,
        objective=manifest["objective"],
        lower_bound=manifest["lower_bound"],
        gap=relative_gap(manifest["objective"], manifest["lower_bound"], checked.worth if checked else 0.0),
        violation=violation,
        status=manifest["status"],
        n_iter=manifest["iteration"],
        n_active=manifest["n_active"],
        history=workspace.history(),
        blocks=lambda: family.blocks(workspace),
        workspace=workspace.name,
    )
    if manifest["problem"]["options"].get("external"):
        return result
    x, nodes = result.read_x(), result.read_nodes()
    return replace(result, read_x=lambda: x, read_nodes=lambda: nodes)
