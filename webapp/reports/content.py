"""A report as it is shown: HTML of its Markdown, with the figures of its blocks in between.

Invariant: a block that cannot be used is an error in its own position, and the rest is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.safestring import SafeString

from webapp.markdown import render_around
from webapp.reports.directives import WORD, BlockError, Directive, parse
from webapp.reports.drawing import Drawing, drawing_of
from webapp.reports.embeds import data_of
from webapp.reports.embeds.readers import Reader
from webapp.reports.models import FrozenFigure, ReportPage

MOST_FIGURES = 20
"""Blocks of one report: each is read and drawn at every view."""


@dataclass(frozen=True)
class Figure:
    """A figure as it is shown: either `drawing` or `error` is None."""

    line: int
    title: str = ""
    drawing: Drawing | None = None
    error: BlockError | None = None
    frozen_at: datetime | None = None
    is_live: bool = False
    """Whether a later view may show other data."""
    missing: tuple[dict[str, Any], ...] = ()
    """What it leaves out: {line, name, value, remedy}."""

    @property
    def problems(self) -> list[dict[str, Any]]:
        """{line, name, value, remedy} of everything that is wrong."""
        return [self.error.to_dict()] if self.error else list(self.missing)


Part = SafeString | Figure
Source = Callable[[Directive], tuple[dict[str, Any], datetime | None]]
"""Returns the data of a block, and since when they are frozen; raises `BlockError`."""


@dataclass(frozen=True)
class Shown:
    parts: list[Part]

    @property
    def figures(self) -> list[Figure]:
        return [one for one in self.parts if isinstance(one, Figure)]

    @property
    def is_live(self) -> bool:
        return any(one.is_live for one in self.figures)

    @property
    def problems(self) -> list[dict[str, Any]]:
        return [problem for one in self.figures for problem in one.problems]


def directives_in(text: str) -> Iterator[Directive]:
    """Yields the usable directives of a text, in order, as many as are shown."""
    blocks = [one for one in render_around(text, WORD) if not isinstance(one, str)]
    for block in blocks[:MOST_FIGURES]:
        try:
            yield parse(block)
        except BlockError:
            continue


def shown(text: str, source: Source) -> Shown:
    """Returns the parts of a report's text, with figures of `source`."""
    parts: list[Part] = []
    number = 0
    for one in render_around(text, WORD):
        if isinstance(one, str):
            parts.append(one)
            continue
        number += 1
        if number > MOST_FIGURES + 1:  # one error says it: thousands would cost every visitor
            continue
        try:
            if number > MOST_FIGURES:
                remedy = f"a report shows at most {MOST_FIGURES} figures: write a second one"
                raise BlockError(one.line, WORD, one.info, remedy)
            directive = parse(one)
            data, frozen_at = source(directive)
        except BlockError as error:
            parts.append(Figure(one.line, error=error))
            continue
        parts.append(
            Figure(
                line=one.line,
                title=directive.title,
                drawing=drawing_of(data),
                frozen_at=frozen_at,
                is_live=frozen_at is None and data["is_live"],
                missing=tuple(data["missing"]),
            )
        )
    return Shown(parts)


def source_of(page: ReportPage, reader: Reader) -> Source:
    """Returns the source of a stored report: frozen data, or what `reader` may see now."""
    frozen = {one.key: one for one in FrozenFigure.objects.filter(page=page)}

    def source(directive: Directive) -> tuple[dict[str, Any], datetime | None]:
        if not directive.frozen:
            return data_of(directive, reader), None
        if stored := frozen.get(directive.key):
            return stored.data, stored.frozen_at
        data_of(directive, reader)  # says why it could not be frozen, if it still cannot
        remedy = "it could not be frozen when the report was saved: edit and save it again"
        raise directive.error("frozen", directive.frozen, remedy)

    return source


def shown_page(page: ReportPage, reader: Reader) -> Shown:
    """Returns the report as `reader` sees it."""
    return shown(page.text, source_of(page, reader))


def preview(text: str, reader: Reader, page: ReportPage | None = None) -> Shown:
    """Returns a text that is not saved: blocks to be frozen show the data of now, and those that
    are frozen already, theirs."""
    stored = {}
    if page is not None:
        stored = {one.key: one for one in FrozenFigure.objects.filter(page=page)}

    def source(directive: Directive) -> tuple[dict[str, Any], datetime | None]:
        if directive.frozen and (one := stored.get(directive.key)):
            return one.data, one.frozen_at
        return data_of(directive, reader), None

    return shown(text, source)
