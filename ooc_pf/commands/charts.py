"""Charts as SVG in a page: no script, colours from the style sheet, and words for those who cannot see them."""

import html
import math
from collections.abc import Callable
from typing import NamedTuple

from .curves import Curve

WIDTH, HEIGHT = 460, 260
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 26, 40  # margins, for the numbers
TICKS = 5
STYLES = 3  # lines of a chart that the style sheet tells apart, by colour and by dashes


class Axis(NamedTuple):
    """From values to places, with the values that are written at it."""

    place: Callable[[float], float]
    ticks: list[float]


def line_chart(number: int, title: str, lines: list[Curve], *, over_time: bool = False, logarithm: bool = False) -> str:
    """Curves over the iterations or the seconds; ``number`` tells the charts of a page apart."""
    across = [x for line in lines for x in _across(line, over_time)]
    values = [value for line in lines for value in line.value]
    x = _axis(min(across), max(across), LEFT, WIDTH - RIGHT)
    y = _axis(min(values), max(values), HEIGHT - BOTTOM, TOP, logarithm=logarithm)
    unit = "seconds of work" if over_time else "iteration"
    parts = [*_grid(x, y), _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, unit, "middle")]
    for k, line in enumerate(lines):
        points = [
            f"{x.place(a):.1f},{y.place(b):.1f}" for a, b in zip(_across(line, over_time), line.value, strict=True)
        ]
        parts.append(f'<polyline class="line line{k % STYLES}" points="{" ".join(points)}"/>')
        if len(points) == 1:
            left, top = points[0].split(",")
            parts.append(f'<circle class="dot line{k % STYLES}" cx="{left}" cy="{top}" r="3"/>')
        parts += _legend(k, line.name)
    told = [f"{line.name} from {line.value[0]:.4g} to {line.value[-1]:.4g}" for line in lines]
    scale = " On a logarithmic scale." if logarithm else ""
    return _svg(number, title, f"{'; '.join(told)}, over the {unit}s.{scale}".replace("works.", "work."), parts)


def bar_chart(number: int, title: str, bars: dict[str, float], unit: str) -> str:
    """A bar for each name, upright."""
    y = _axis(0.0, max(bars.values()), HEIGHT - BOTTOM, TOP)
    if all(float(value).is_integer() for value in bars.values()):
        y = Axis(y.place, [tick for tick in y.ticks if tick.is_integer()])
    step = (WIDTH - LEFT - RIGHT) / len(bars)
    x = Axis(lambda k: LEFT + step * k, [])
    parts = [*_grid(x, y), _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, unit, "middle")]
    for k, (name, value) in enumerate(bars.items()):
        top = y.place(value)
        box = f'x="{x.place(k + 0.15):.1f}" y="{top:.1f}" width="{0.7 * step:.1f}" height="{HEIGHT - BOTTOM - top:.1f}"'
        parts.append(f'<rect class="bar" {box}/>')
        parts.append(_text(x.place(k + 0.5), HEIGHT - BOTTOM + 14, name, "middle"))
    told = ", ".join(f"{name}: {value:.4g}" for name, value in bars.items())
    return _svg(number, title, told, parts)


def _across(line: Curve, over_time: bool) -> list[float]:
    return line.seconds if over_time else [float(iteration) for iteration in line.iteration]


def _axis(low: float, high: float, first: float, last: float, *, logarithm: bool = False) -> Axis:
    """The values from low to high, put between two places."""
    if logarithm:
        low, high = math.floor(math.log10(low)), math.ceil(math.log10(high))
        high = max(high, low + 1)
        ticks = [10.0**k for k in range(int(low), int(high) + 1, -(-int(high - low) // TICKS))]
    else:
        low, high = (low, high) if high > low else (low - (abs(low) or 1.0) / 2.0, high + (abs(high) or 1.0) / 2.0)
        ticks = _round_numbers(low, high)

    def place(value: float) -> float:
        value = math.log10(value) if logarithm else value
        return first + (last - first) * (value - low) / (high - low)

    return Axis(place, ticks)


def _round_numbers(low: float, high: float) -> list[float]:
    """A few values of one, two or five times a power of ten apart."""
    size = 10.0 ** math.floor(math.log10((high - low) / TICKS))
    step = next(factor * size for factor in (1.0, 2.0, 5.0, 10.0) if (high - low) / (factor * size) <= TICKS)
    return [step * k for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _grid(x: Axis, y: Axis) -> list[str]:
    parts = []
    for value in y.ticks:
        at = y.place(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(_text(LEFT - 6, at + 4, f"{value:.6g}", "end"))
    for value in x.ticks:
        parts.append(_text(x.place(value), HEIGHT - BOTTOM + 14, f"{value:.6g}", "middle"))
    return parts


def _legend(k: int, name: str) -> list[str]:
    left = LEFT + 128 * k
    return [
        f'<line class="line line{k % STYLES}" x1="{left}" x2="{left + 22}" y1="12" y2="12"/>',
        _text(left + 27, 16, name, "start"),
    ]


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _svg(number: int, title: str, told: str, parts: list[str]) -> str:
    title, told, body = html.escape(title), html.escape(told), "\n".join(parts)
    return (
        f'<figure>\n<svg role="img" viewBox="0 0 {WIDTH} {HEIGHT}" aria-labelledby="title{number} told{number}">\n'
        f'<title id="title{number}">{title}</title>\n<desc id="told{number}">{told}</desc>\n{body}\n</svg>\n'
        f"<figcaption>{title}</figcaption>\n</figure>"
    )
