"""The loop of Algorithm 1 on a toy problem: the shortest documentation of its contract."""

from dataclasses import dataclass

import numpy as np
import pytest

from ooc_pf.engine.certificate import Certificate
from ooc_pf.engine.loop import run
from ooc_pf.engine.monitor import Monitor
from ooc_pf.engine.problem import Pass, State, Swept
from ooc_pf.errors import SearchStopped
from ooc_pf.storage.vectors import Pool, Vector

TARGET, BOUNDS = 5.0, (4.0, 2.0, 3.0)


@dataclass(frozen=True)
class Plan:
    stage: str = "scan"


class Store(dict):
    """The dual of each remembered bound."""

    def append(self, rows):
        new = [bound for bound in rows if bound not in self]
        self.update(dict.fromkeys(new, 0.0))
        return len(new)

    def forget(self):
        idle = [bound for bound, dual in self.items() if dual == 0.0]
        for bound in idle:
            del self[bound]
        return len(idle)


class Toy:
    """min 1/2 (x - 5)^2 with x <= b for every bound b. The point is x; the oracle brings one violated bound a time."""

    def find(self, state):
        violated = [bound for bound in BOUNDS if state.point > bound]
        worst = max(0.0, state.point - min(BOUNDS))
        feasible = min(state.point, *BOUNDS)
        certificate = Certificate(0.5 * (feasible - TARGET) ** 2, self.bound(state), worst)
        return Pass(len(violated), worst, violated[:1], 3, certificate, Vector.of(np.array([feasible])))

    def sweep(self, state, found):
        for bound, dual in state.rows.items():
            step = max(-dual, state.point - bound)
            state.rows[bound], state.point = dual + step, state.point - step
        return Swept(1, len(state.rows))

    def forget(self, state):
        return state.rows.forget()

    def bound(self, state):
        return 0.5 * (TARGET**2 - state.point**2) - sum(bound * dual for bound, dual in state.rows.items())

    def plan(self, state, turn):
        assert turn.after >= turn.before, "a sweep never lowers the bound"
        return state.plan

    def verdict(self, state):
        return None

    def close(self, state, status):
        return state.certificate


def solve(problem, *, max_iter=None, monitor=None, commits=None):
    state = State(TARGET, Store(), Plan(), Pool())
    commits = [] if commits is None else commits
    status = run(
        problem,
        state,
        tol=1e-9,
        max_iter=max_iter,
        monitor=monitor or Monitor(),
        commit=lambda state, record, status: commits.append((record, status)),
    )
    return status, state, commits


def test_the_loop_finds_projects_and_forgets_until_the_certificate_holds():
    status, state, commits = solve(Toy())
    assert status == "converged" and state.point == 2.0
    assert state.rows == {2.0: 3.0}, "the bound of 4 was remembered first, and forgotten"
    assert state.objective == 4.5 and state.certificate.lower_bound == 4.5
    assert [record["added"] for record, _ in commits] == [1, 1, 0, 0]
    assert [record["forgotten"] for record, _ in commits] == [0, 0, 1, 0]
    assert [record["worst"] for record, _ in commits][2:] == [0.0, 0.0], "feasible is not yet optimal"
    assert [status for _, status in commits] == ["running", "running", "running", "converged"]


def test_every_iteration_is_recorded_with_what_it_found_and_proved():
    _, state, _ = solve(Toy())
    first = state.history[0]
    expected = {"iteration": 1, "stage": "scan", "found": 3, "worst": 3.0, "relaxed": 3, "added": 1, "sweeps": 1}
    assert expected.items() <= first.items()
    assert first["lower_bound"] == pytest.approx(0.5), "that of x <= 4 alone"
    assert first["objective"] == 4.5 and first["kept"] == 1


def test_limits_end_it_between_iterations():
    assert solve(Toy(), max_iter=1)[0] == "iteration_limit"
    assert solve(Toy(), monitor=Monitor(max_time=0))[0] == "time_limit"
    assert solve(Toy(), monitor=Monitor(callback=lambda record: record["iteration"] == 2))[1].iteration == 2


def test_a_problem_may_give_up():
    class Hopeless(Toy):
        def verdict(self, state):
            return "infeasible" if state.iteration else None

    status, state, _ = solve(Hopeless())
    assert (status, state.iteration) == ("infeasible", 1)


def test_a_search_that_is_stopped_commits_nothing():
    class Stopped(Toy):
        def find(self, state):
            if state.iteration:
                raise SearchStopped
            return super().find(state)

    status, state, commits = solve(Stopped(), monitor=Monitor(max_time=1e9))
    assert status == "interrupted" and state.iteration == 1 and len(commits) == 1


def test_the_best_feasible_point_is_kept():
    class Wandering(Toy):
        """Whose second feasible point is worse than the first."""

        def find(self, state):
            found = super().find(state)
            if state.iteration != 1:
                return found
            worse = Certificate(100.0, found.certificate.lower_bound, found.worst)
            return Pass(found.found, found.worst, found.rows, found.relaxed, worse, Vector.of(np.array([-9.0])))

    _, state, _ = solve(Wandering(), max_iter=2)
    assert state.objective == 4.5 and state.feasible.whole.tolist() == [2.0]
