"""Renderer of the page of the docs, which depends on the record of measurements alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import MEASUREMENTS
from benchmarks.record import Measurement, Record

HEAD = """# Benchmarks

Written by `python -m benchmarks all` from `benchmarks.json`, where every measurement is kept; do
not edit either by hand, a test compares them. A row says when it was measured (UTC), under which
load (mean of runnable processes over a minute, share of all cores in use during one second;
before and after), on which machine and with which version of Grove and of what it uses. A
measurement that is repeated (`python -m benchmarks all --only NAME`) replaces its rows, and keeps
the earlier ones in the last column. A ratio is how many times better Grove is than the peer that
it names, both measured in turns in one run, and is only reported where that run found that both
did the same work. Rows with a unit in their name are absolute. The figures of each section below
the table, the first paint and the heap of `ui` among them, are observations without a goal: they
explain a row, or no peer does the same work. `python -m benchmarks NAME` measures without
recording.
"""
COLUMNS = ("measurement", "row", "measured", "goal", "", "when", "load", "machine", "version",
           "earlier")  # fmt: skip


def document(record: Record) -> str:
    """Returns the whole page, in Markdown."""
    newest = [record.of(name) for name in MEASUREMENTS]
    measured = [takes for takes in newest if takes]
    parts = [HEAD, "\n".join(_summary(measured))]
    if absent := [name for name, takes in zip(MEASUREMENTS, newest, strict=True) if not takes]:
        parts.append(f"Not measured yet: {', '.join(absent)}.")
    parts += ["\n".join(_section(takes[0])) for takes in measured]
    parts.append(f"SHA-256 of the rows: `{record.digest()}`")
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def _summary(measured: list[list[Measurement]]) -> Iterator[str]:
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|" + "---|" * len(COLUMNS)
    for now, *earlier in measured:
        names = dict.fromkeys([*now.rows(), *(row for one in earlier for row in one.rows())])
        for name in names or [""]:
            yield _row(now, earlier, name)


def _row(now: Measurement, earlier: list[Measurement], name: str) -> str:
    goal = now.goal(name)
    said = (_outcome(now) or now.judged(name), now.options and f"with `{now.options}`",
            "measured again" if earlier else "")  # fmt: skip
    cells = (
        now.name,
        f"`{name}`" if name else "",
        _cell(now.ratios.get(name, "")),
        str(goal or ""),
        ", ".join(filter(None, said)),
        now.measured_at,
        f"{_load(now.load_before)} → {_load(now.load_after)}",
        now.machine,
        ", ".join((f"grove {now.commit}", *_versions(now))),
        "; ".join(_earlier(one, name) for one in earlier),
    )
    return f"| {' | '.join(cells)} |"


def _outcome(one: Measurement) -> str:
    return "left out" if one.left_out else "failed" if one.failed else ""


def _earlier(one: Measurement, name: str) -> str:
    value = _outcome(one) or _cell(one.ratios.get(name, "no value"))
    judged = one.judged(name) if name in one.ratios else ""
    options = one.options and f"with `{one.options}`"
    load, version = f"load {_load(one.load_before)}", f"grove {one.commit}"
    return f"{value} ({', '.join(filter(None, (judged, options, one.measured_at, load, version)))})"


def _load(load: dict[str, float]) -> str:
    return f"{load['average']:g}, {load['busy_percent']:g} %"


def _versions(one: Measurement) -> list[str]:
    return [_cell(f"{name} {value}") for name, value in one.versions.items()]


def _section(one: Measurement) -> Iterator[str]:
    yield f"## {one.name}\n"
    yield f"{one.about}\n"
    if one.left_out:
        yield f"Left out: {one.left_out}"
    if one.failed:
        yield f"Failed: {one.failed}"
    if one.figures:
        yield "| figure | |"
        yield "|---|---|"
        for name, value in one.figures.items():
            yield f"| `{name}` | {_cell(value)} |"
        yield ""
    yield f"Took {one.seconds:.0f} s from {one.measured_at}."


def _cell(value: Any) -> str:
    return _words(value).replace("|", "\\|").replace("\n", " ")


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_words(inner)}" for key, inner in value.items())
    return ", ".join(map(_words, value)) if isinstance(value, list | tuple) else str(value)
