"""A scatter plot as SVG: points with intervals on both axes, x on a logarithmic scale.

Colour and shape tell the groups apart, so that neither is needed alone; the background is white, so
that the picture is legible in both schemes of the site.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 500
LEFT, RIGHT, TOP, BOTTOM = 66, 20, 92, 56
"""Margins of the plot, in pixels."""
COLOURS = ("#0b7285", "#c2410c", "#6d28d9", "#3f6212", "#9d174d", "#334155")
SHAPES = ("circle", "square", "diamond", "triangle", "circle", "square")
LARGE, SMALL = 7.0, 5.0
"""Half the size of a point without and with a label."""
LEAST_X = 1 / 16
"""Where a ratio of 0 is drawn, which a logarithm has no place for."""
FONT = "font-family='system-ui, sans-serif' fill='#1f2937'"


@dataclass(frozen=True)
class Mark:
    x: float
    x_low: float | None
    x_high: float | None
    y: float
    y_low: float
    y_high: float
    group: str
    is_filled: bool
    label: str = ""


@dataclass(frozen=True)
class _Scale:
    """Pixels of values; x by its logarithm."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        held = min(max(value, self.x_low), self.x_high)
        share = math.log(held / self.x_low) / math.log(self.x_high / self.x_low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = (value - self.y_low) / (self.y_high - self.y_low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def drawing(
    marks: Sequence[Mark], title: str, x_title: str, y_title: str, filled: tuple[str, str]
) -> str:
    """Returns the SVG of one or more marks; `filled` names hollow points and filled ones."""
    scale = _scale(marks)
    groups = list(dict.fromkeys(mark.group for mark in marks))
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' role='img'>",
        f"<title>{escape(title)}</title>",
        f"<rect width='{WIDTH}' height='{HEIGHT}' fill='#ffffff'/>",
        *_axes(scale, x_title, y_title),
        *_legend(groups, filled),
        *(line for mark in marks for line in _interval(mark, scale, groups.index(mark.group))),
        *(line for mark in marks for line in _point(mark, scale, groups.index(mark.group))),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _scale(marks: Sequence[Mark]) -> _Scale:
    """Returns a scale that holds every point whole, and 1 and 0 in any case."""
    xs = [max(x, LEAST_X) for m in marks for x in (m.x, m.x_low or m.x, m.x_high or m.x)]
    ys = [y for m in marks for y in (m.y_low, m.y_high)]
    low = 2.0 ** math.floor(math.log2(min(*xs, 0.8)))
    high = 2.0 ** math.ceil(math.log2(max(*xs, 1.25)))
    return _Scale(
        max(low, LEAST_X), min(high, 64.0),
        math.floor(min(*ys, -0.05) * 10) / 10, math.ceil(max(*ys, 0.05) * 10) / 10,
    )  # fmt: skip


def _axes(scale: _Scale, x_title: str, y_title: str) -> Iterator[str]:
    foot, end = HEIGHT - BOTTOM, WIDTH - RIGHT
    exponents = range(round(math.log2(scale.x_low)), round(math.log2(scale.x_high)) + 1)
    for value in (2.0**exponent for exponent in exponents):
        x = scale.x(value)
        yield _line(x, TOP, x, foot, value == 1)
        yield _text(x, foot + 18, f"{value:g}", "middle")
    tenths = range(round(scale.y_low * 10), round(scale.y_high * 10) + 1)
    for value in (tenth / 10 for tenth in tenths):
        y = scale.y(value)
        yield _line(LEFT, y, end, y, value == 0)
        yield _text(LEFT - 8, y + 4, f"{value:+.1f}".replace("-", "−") if value else "0", "end")
    yield _text((LEFT + end) / 2, HEIGHT - 12, x_title, "middle")
    middle = (TOP + foot) / 2
    yield _text(16, middle, y_title, "middle", f" transform='rotate(-90 16 {middle:.1f})'")


def _legend(groups: Sequence[str], filled: tuple[str, str]) -> Iterator[str]:
    for number, group in enumerate(groups):
        x, y = LEFT + 8 + 350 * (number % 2), 20 + 22 * (number // 2)
        yield _shape(x, y, LARGE, number, is_filled=True)
        yield _text(x + 14, y + 4, group)
    y = 20 + 22 * ((len(groups) + 1) // 2)
    for number, words in enumerate(filled):
        x = LEFT + 8 + 350 * number
        yield _shape(x, y, LARGE, 0, is_filled=bool(number))
        yield _text(x + 14, y + 4, words)


def _interval(mark: Mark, scale: _Scale, group: int) -> Iterator[str]:
    x, y = scale.x(mark.x), scale.y(mark.y)
    stroke = f"stroke='{_colour(group)}' stroke-opacity='{0.35 if mark.label else 0.8}'"
    low, high = scale.y(mark.y_low), scale.y(mark.y_high)
    yield f"<path d='M{x:.1f} {low:.1f}V{high:.1f}' {stroke}/>"
    if mark.x_low is not None and mark.x_high is not None:
        start, end = scale.x(mark.x_low), scale.x(mark.x_high)
        yield f"<path d='M{start:.1f} {y:.1f}H{end:.1f}' {stroke}/>"


def _point(mark: Mark, scale: _Scale, group: int) -> Iterator[str]:
    x, y = scale.x(mark.x), scale.y(mark.y)
    yield _shape(x, y, SMALL if mark.label else LARGE, group, is_filled=mark.is_filled)
    if mark.label:
        yield _text(x + SMALL + 3, y - 4, mark.label)


def _shape(x: float, y: float, size: float, group: int, *, is_filled: bool) -> str:
    colour = _colour(group)
    paint = f"fill='{colour if is_filled else '#ffffff'}' stroke='{colour}' stroke-width='2'"
    left, right, top, foot = x - size, x + size, y - size, y + size
    match SHAPES[group % len(SHAPES)]:
        case "circle":
            return f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{size:g}' {paint}/>"
        case "square":
            side = f"width='{2 * size:g}' height='{2 * size:g}'"
            return f"<rect x='{left:.1f}' y='{top:.1f}' {side} {paint}/>"
        case "diamond":
            corners = f"{left:.1f},{y:.1f} {x:.1f},{top:.1f} {right:.1f},{y:.1f} {x:.1f},{foot:.1f}"
            return f"<polygon points='{corners}' {paint}/>"
        case _:
            corners = f"{left:.1f},{foot:.1f} {x:.1f},{top:.1f} {right:.1f},{foot:.1f}"
            return f"<polygon points='{corners}' {paint}/>"


def _colour(group: int) -> str:
    return COLOURS[group % len(COLOURS)]


def _line(x1: float, y1: float, x2: float, y2: float, is_zero: bool) -> str:
    paint = "stroke='#475569' stroke-width='1.5'" if is_zero else "stroke='#e2e8f0'"
    return f"<path d='M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}' {paint}/>"


def _text(x: float, y: float, words: str, anchor: str = "start", more: str = "") -> str:
    place = f"x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-size='13'"
    return f"<text {place} {FONT}{more}>{escape(words)}</text>"
