"""The history of a run as curves, for pages and pictures."""

from typing import Any, NamedTuple

# Fields of a record, by the names that progress has for them.
BOUNDS = {"lower_bound": "lower bound", "objective": "objective"}
ERRORS = {"gap": "gap", "worst": "violation"}
ROWS = {"found": "rows found", "kept": "rows kept"}
COST, RATIO = {"cost": "cost"}, {"ratio": "certified ratio"}  # of clusters, on the way
LARGEST = 1e300  # shown; differences of such numbers are still numbers
MOST_POINTS = 600  # of a curve; longer ones are thinned out


class Curve(NamedTuple):
    """A quantity at some iterations, with the seconds of work until then."""

    name: str
    iteration: list[int]
    seconds: list[float]
    value: list[float]


def curves(history: list[dict[str, Any]], fields: dict[str, str], *, positive: bool = False) -> list[Curve]:
    """A curve for each field of the records, by the name it is shown under, where there is anything to show.

    With ``positive``, for axes with logarithms, only values above zero count.
    """
    times = work_until(history)
    found = []
    for field, name in fields.items():
        points = [
            (record["iteration"], seconds, float(record[field]))
            for record, seconds in zip(history, times, strict=True)
            if _is_shown(record.get(field), positive)
        ]
        if points:
            found.append(Curve(name, *map(list, zip(*thinned(points), strict=True))))
    return found


def _is_shown(value: Any, positive: bool) -> bool:
    return isinstance(value, int | float) and abs(value) < LARGEST and (value > 0.0 or not positive)


def thinned(points: list[Any]) -> list[Any]:
    """Evenly spread points, the last one among them."""
    step = -(-len(points) // MOST_POINTS)
    return points[:-1][::step] + points[-1:]


def work_until(history: list[dict[str, Any]]) -> list[float]:
    """Seconds of work up to each iteration, over all calls."""
    total, times = 0.0, []
    for record in history:
        total += sum(record["seconds"].values())
        times.append(total)
    return times


def work_by_phase(history: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds of work of each kind, most first."""
    total: dict[str, float] = {}
    for record in history:
        for phase, seconds in record["seconds"].items():
            total[phase] = total.get(phase, 0.0) + seconds
    return dict(sorted(total.items(), key=lambda each: -each[1]))


def count_calls(history: list[dict[str, Any]]) -> int:
    """How often the run was started or resumed.

    A commit counts for the iteration after it, so the first iteration of every call has no time for one.
    """
    return sum("disk" not in record["seconds"] for record in history)
