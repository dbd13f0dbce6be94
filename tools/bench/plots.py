"""Pictures of benchmarks, as SVG files that come out the same for the same numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "ooc_pf"

from matplotlib import pyplot, ticker  # noqa: E402  (the backend comes first)


class Panel(NamedTuple):
    """One chart: its lines, and single points beside them, by name."""

    x: str
    y: str
    lines: dict[str, tuple[Sequence[float], Sequence[float]]]
    points: Mapping[str, tuple[float, float]] = MappingProxyType({})
    log_x: bool = False
    log_y: bool = False


def draw(path: Path, title: str, panels: Sequence[Panel]) -> None:
    """Charts side by side."""
    figure, axes = pyplot.subplots(1, len(panels), figsize=(5.2 * len(panels), 3.6), squeeze=False)
    for panel, axis in zip(panels, axes[0], strict=True):
        for name, (x, y) in panel.lines.items():
            axis.plot(x, y, label=name, marker="." if len(x) <= 30 else None)
        for name, (a, b) in panel.points.items():
            axis.plot([a], [b], "o", label=name)
        axis.set(xlabel=panel.x, ylabel=panel.y)
        axis.set_xscale("log" if panel.log_x else "linear")
        axis.set_yscale("log" if panel.log_y else "linear")
        for scale, along in ((panel.log_x, axis.xaxis), (panel.log_y, axis.yaxis)):
            if scale:  # plain numbers, at one, two and five times the powers of ten
                along.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
                along.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}")
                along.set_minor_formatter(ticker.NullFormatter())
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    print(f"written to {path}")
