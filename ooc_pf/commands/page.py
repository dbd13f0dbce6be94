"""A run as one page that opens anywhere: no script, nothing loaded from elsewhere, every word escaped."""

import html
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..engine.result import Result, cluster_sizes
from .charts import bar_chart, line_chart
from .curves import BOUNDS, COST, ERRORS, RATIO, ROWS, count_calls, curves, work_by_phase
from .explain import claims, outcome

LAST = 9  # number of the chart of clusters, after the others

STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --paper: #fff; --soft: #667; --rule: #d8dce4;
  --line0: #0b62c4; --line1: #b5480a; --line2: #3c7a2a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --paper: #14181f; --soft: #a3abb9; --rule: #39414f;
  --line0: #7db6ff; --line1: #ffae7a; --line2: #94d882; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 62rem; padding: 0 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--rule); }
.lead { font-size: 1.15rem; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
th, td { text-align: left; padding: .25rem 1.2rem .25rem 0; border-bottom: 1px solid var(--rule); vertical-align: top;
  overflow-wrap: anywhere; }
th:first-child, th + td { min-width: 6rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(22rem, 1fr)); gap: 1.5rem; }
figure { margin: 0; } svg { width: 100%; height: auto; } figcaption { color: var(--soft); }
svg text { font-size: 12px; fill: var(--soft); }
.grid { stroke: var(--rule); }
.line { fill: none; stroke-width: 2; } .line0 { stroke: var(--line0); }
.line1 { stroke: var(--line1); stroke-dasharray: 7 3; } .line2 { stroke: var(--line2); stroke-dasharray: 2 3; }
.dot { fill: var(--paper); stroke-width: 2; } .bar { fill: var(--line0); }
@media print { :root { --ink: #000; --paper: #fff; --soft: #333; --rule: #bbb; }
  body { margin: 0; max-width: none; font-size: 11pt; } figure, table { break-inside: avoid; }
  details > * { display: block; } }
"""
# Nothing may be loaded, whatever a name in the workspace says.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def write_page(result: Result, what: str, asked: dict[str, Any], tables: dict[str, tuple[Any, Iterable[Any]]]) -> str:
    """The page of a run.

    Parameters
    ----------
    result : Result
    what : str
        What was solved, in a line.
    asked : dict
        The options of the run.
    tables : dict
        Further tables, head and rows, by their captions.
    """
    name = f"{result.problem}: {result.status.replace('_', ' ')}"
    parts = [
        f"<h1>{_safe(name)}</h1>",
        f'<p class="lead">{_safe(what)}; {_safe(outcome(result))}. {_safe(_calls(result))}</p>',
        "<h2>What is proven</h2>",
        table("The certificate", ("number", "value", "what it says"), claims(result)),
        "<h2>How it went</h2>",
        _charts(result) or "<p>No iteration was made.</p>",
        *_clusters(result),
        "<h2>What was asked</h2>",
        table("Options of the run", ("option", "value"), asked.items()),
        "<h2>Where the work went</h2>",
        *_phase_chart(result.history),
        table("Seconds of work by phase", ("phase", "seconds"), _phases(result.history)),
        *(table(caption, head, rows) for caption, (head, rows) in tables.items()),
    ]
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{_safe(name)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_safe(POLICY)}">\n'
        f'<meta name="viewport" content="width=device-width">\n<style>{STYLE}</style>\n</head>\n'
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def table(caption: str, head: tuple[str, ...], rows: Iterable[Iterable[Any]]) -> str:
    """A table whose first column names the rows."""
    top = "".join(f'<th scope="col">{_safe(name)}</th>' for name in head)
    lines = []
    for first, *rest in rows:
        cells = "".join(f"<td>{_safe(cell)}</td>" for cell in rest)
        lines.append(f'<tr><th scope="row">{_safe(first)}</th>{cells}</tr>')
    top, body = f"<thead><tr>{top}</tr></thead>", "\n".join(lines)
    return f"<table>\n<caption>{_safe(caption)}</caption>\n{top}\n<tbody>\n{body}\n</tbody>\n</table>"


def _safe(text: Any) -> str:
    return html.escape(str(text))


def _calls(result: Result) -> str:
    resumed = count_calls(result.history) - 1
    return "" if resumed < 1 else f"It was resumed {'once' if resumed == 1 else f'{resumed} times'}."


def _phases(history: list[dict[str, Any]]) -> Iterable[tuple[str, str]]:
    return ((phase, f"{seconds:.2f}") for phase, seconds in work_by_phase(history).items())


def _phase_chart(history: list[dict[str, Any]]) -> list[str]:
    phases = work_by_phase(history)
    return [_side_by_side([bar_chart(LAST + 1, "Seconds of work by phase", phases, "phase")])] if phases else []


def _charts(result: Result) -> str:
    """Bounds, errors and rows, over iterations and over time."""
    history = result.history
    drawn = [
        ("Bounds over the iterations", curves(history, BOUNDS), False, False),
        ("Bounds over time", curves(history, BOUNDS), True, False),
        ("Gap and violation over the iterations", curves(history, ERRORS, positive=True), False, True),
        ("Gap and violation over time", curves(history, ERRORS, positive=True), True, True),
        ("Rows over the iterations", curves(history, ROWS), False, False),
        ("Cost of the clusters over the iterations", curves(history, COST), False, False),
        ("Cost of the clusters over its lower bound", curves(history, RATIO), False, False),
    ]
    charts = [
        line_chart(number, title, lines, over_time=over_time, logarithm=logarithm)
        for number, (title, lines, over_time, logarithm) in enumerate(drawn)
        if lines
    ]
    return _side_by_side(charts) if charts else ""


def _side_by_side(charts: list[str]) -> str:
    return "\n".join(['<div class="charts">', *charts, "</div>"])


def _clusters(result: Result) -> list[str]:
    """How many clusters there are of each size, in ranges that double."""
    labels = getattr(result, "labels", None)
    if labels is None:
        return []
    size = cluster_sizes(labels)
    power = np.bincount(np.frexp(size)[1] - 1)
    bars = {_short(k): float(count) for k, count in enumerate(power)}
    largest = ", ".join(f"{each:,}" for each in size[:10])
    return [
        "<h2>Clusters</h2>",
        f"<p>{len(size):,} clusters; the largest have {_safe(largest)} nodes.</p>",
        _side_by_side([bar_chart(LAST, "Clusters by size", bars, "nodes in a cluster, at least")]),
        table("Clusters by size", ("nodes", "clusters"), [(_range(k), f"{count:,}") for k, count in enumerate(power)]),
    ]


def _short(power: int) -> str:
    """2**power in few signs, below a bar.

    >>> [_short(0), _short(9), _short(12), _short(20)]
    ['1', '512', '4k', '1M']
    """
    return f"{2 ** (power % 10)}" + "kMG"[power // 10 - 1] if power >= 10 else f"{2**power}"


def _range(power: int) -> str:
    return "1" if power == 0 else f"{2**power:,} to {2 ** (power + 1) - 1:,}"
