"""Lines of a chart: paths of their means, bands from least to most, and ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 10, 26
LOOKS = 8
"""Colours with their dashes (`reports.css`)."""
_TICKS = 5
_FURTHEST = 1e300
"""Values beyond it are drawn outside of the picture: their difference would not be finite."""


@dataclass(frozen=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True)
class Line:
    label: str
    look: int
    mean: str
    """Path, with a new beginning after each gap."""
    band: str
    """Path of the areas between least and most; empty where they are the same."""
    dots: list[tuple[float, float]]
    """Points that no line leads to."""
    points: int
    first: str
    last: str
    least: str
    most: str


@dataclass(frozen=True)
class ChartDrawing:
    kind: str
    name: str
    axis: str
    lines: list[Line]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    about: str
    """The picture in words."""
    left_out: int
    runs: list[dict[str, Any]]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def chart_drawing(data: dict[str, Any]) -> ChartDrawing:
    """Returns the drawing of a chart's data (`embeds.charts`)."""
    lines = [line for line in data["lines"] if line["x"]]
    x_span = _span([x for line in lines for x in line["x"]], room=0.0)
    ends = [value for line in lines for name in ("least", "most") for value in line[name]]
    y_span = _span(ends, room=0.06)
    scale = _Scale(x_span, y_span)
    labels = [line["label"] for line in lines]
    name = ", ".join(labels[:3]) + (f" and {len(labels) - 3} more" if len(labels) > 3 else "")
    return ChartDrawing(
        kind="chart",
        name=name,
        axis=data["axis"],
        lines=[_line(line, index, scale) for index, line in enumerate(lines)],
        x_ticks=[Tick(scale.x(at), _x_text(data["axis"], at)) for at in _x_ticks(data, x_span)],
        y_ticks=[Tick(scale.y(at), number(at)) for at in ticks(*y_span)],
        about=f"Chart over {data['axis']} from {number(x_span[0])} to {number(x_span[1])}: {name}",
        left_out=data["left_out"],
        runs=data["runs"],
    )


class _Scale:
    """Positions of values in the picture, rounded to a tenth of its units."""

    def __init__(self, x_span: tuple[float, float], y_span: tuple[float, float]):
        self._x, self._y = x_span, y_span

    def x(self, value: float) -> float:
        low, high = self._x
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / (high - low), 1)

    def y(self, value: float) -> float:
        low, high = self._y
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low), 1)


def _line(line: dict[str, Any], index: int, scale: _Scale) -> Line:
    x = [scale.x(at) for at in line["x"]]
    upper, lower, mean = (
        [scale.y(value) for value in line[name]] for name in ("most", "least", "mean")
    )
    edges = [0, *line.get("breaks", ()), len(x)]
    pieces = [slice(first, after) for first, after in pairwise(edges)]
    return Line(
        label=line["label"],
        look=index % LOOKS,
        mean="".join(_path(x[piece], mean[piece]) for piece in pieces),
        band="" if upper == lower else "".join(_area(x, upper, lower, piece) for piece in pieces),
        dots=[(x[one.start], mean[one.start]) for one in pieces if one.stop - one.start == 1],
        points=len(x),
        first=number(line["mean"][0]),
        last=number(line["mean"][-1]),
        least=number(min(line["least"])),
        most=number(max(line["most"])),
    )


def _area(x: list[float], upper: list[float], lower: list[float], piece: slice) -> str:
    outline = [*upper[piece], *lower[piece][::-1]]
    return f"{_path([*x[piece], *x[piece][::-1]], outline)}Z"


def _path(x: Sequence[float], y: Sequence[float]) -> str:
    return "M" + "L".join(f"{a:g} {b:g}" for a, b in zip(x, y, strict=True))


def _span(values: Sequence[float], room: float) -> tuple[float, float]:
    """Returns the least and greatest value with room around them, never the same."""
    if not values:
        return 0.0, 1.0
    low, high = max(min(values), -_FURTHEST), min(max(values), _FURTHEST)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        reach = abs(low) * 0.1 or 0.5
        return low - reach, high + reach
    around = (high - low) * room
    return low - around, high + around


def ticks(low: float, high: float, about: int = _TICKS) -> list[float]:
    """Returns round values in the range, about as many as requested."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [at * step for at in range(first, math.floor(high / step + 1e-9) + 1)]


def _x_ticks(data: dict[str, Any], span: tuple[float, float]) -> list[float]:
    """Returns ticks of the x axis; steps, tokens and nodes have no fractions."""
    found = ticks(*span)
    return found if data["axis"] == "time" else [at for at in found if at == round(at)]


def number(value: float) -> str:
    """Returns a value in at most four significant digits: 0.25, 1,500, 2.1e+07."""
    if value == 0:
        return "0"
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _x_text(axis: str, value: float) -> str:
    if axis != "time":
        return number(value)
    for size, unit in ((3600, "h"), (60, "min")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} s"
