"""Renderer of the page of the docs, which depends on the record of measurements alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks import MEASUREMENTS
from benchmarks.record import Measurement, Record
from benchmarks.row_names import row_name

HEAD = """# Benchmarks

How many times better Grove is than the peer named beside it, both measured in turns in one run;
rows without a peer are quantities of Grove's own. A ratio is only reported where that run found
that both did the same work. A row links to the section of its measurement, which has its conditions
(load, machine, versions, options) and earlier values.
"""
TAIL = """## How this page is written

By `python -m benchmarks all` from `benchmarks.json`, where every measurement is kept; do not edit
either by hand, a test compares them. Times are UTC. A load is the mean of runnable processes over a
minute and the share of all cores in use during one second, before and after the measurement. A
repeated measurement (`python -m benchmarks all --only NAME`) replaces its rows and keeps the
earlier ones in a table of their own. Figures without a goal are observations: they explain a row,
or no peer does the same work. `python -m benchmarks NAME` measures without recording.
"""
COLUMNS = ("what", "against", "ratio", "goal", "result", "when")
ROW_COLUMNS = ("row", "measured", "goal", "result")
EARLIER_COLUMNS = ("row", "earlier", "result", "when", "load", "grove")


def document(record: Record) -> str:
    """Returns the whole page, in Markdown."""
    newest = [record.of(name) for name in MEASUREMENTS]
    measured = [takes for takes in newest if takes]
    parts = [HEAD, "\n".join(_summary(measured))]
    if absent := [name for name, takes in zip(MEASUREMENTS, newest, strict=True) if not takes]:
        parts.append(f"Not measured yet: {', '.join(absent)}.")
    parts += ["\n".join(_section(now, earlier)) for now, *earlier in measured]
    parts.append(TAIL)
    parts.append(f"SHA-256 of the rows: `{record.digest()}`")
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def _summary(measured: list[list[Measurement]]) -> Iterator[str]:
    """Yields the short table: a line for each row with a value, and one for a measurement that has
    none."""
    yield from _header(COLUMNS)
    missing = []
    for now, *_ in measured:
        names = [name for name in now.rows() if name in now.ratios]
        missing += [f"{now.name} `{name}`" for name in now.rows() if name not in now.ratios]
        yield from (_line(now, name) for name in names)
        if not names:
            yield _cells((_link(now, now.name), "", "", "", _outcome(now), now.measured_at[:10]))
    if missing:
        yield f"\nWithout a value: {', '.join(missing)}."


def _line(now: Measurement, name: str) -> str:
    what, against = row_name(now.name, name)
    value, goal = _cell(now.ratios[name]), str(now.goal(name) or "")
    said = (_outcome(now) or now.judged(name), "with options" if now.options else "")
    judged = ", ".join(filter(None, said))
    return _cells((_link(now, what), against, value, goal, judged, now.measured_at[:10]))


def _link(now: Measurement, words: str) -> str:
    """Returns the words as a link to the measurement's section."""
    return f"[{words}](#{now.name})"


def _header(columns: tuple[str, ...]) -> Iterator[str]:
    yield _cells(columns)
    yield "|" + "---|" * len(columns)


def _cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rows(now: Measurement, earlier: list[Measurement]) -> Iterator[str]:
    """Yields the table of a measurement's rows, and that of their earlier values."""
    names = list(dict.fromkeys([*now.rows(), *(row for one in earlier for row in one.rows())]))
    if not names:
        return
    yield from _header(ROW_COLUMNS)
    for name in names:
        value, goal = _cell(now.ratios.get(name, "")), str(now.goal(name) or "")
        yield _cells((f"`{name}`", value, goal, _outcome(now) or now.judged(name)))
    yield ""
    if earlier:
        yield from _header(EARLIER_COLUMNS)
        yield from (_cells(_earlier(one, name)) for name in names for one in earlier)
        yield ""


def _conditions(now: Measurement) -> Iterator[str]:
    """Yields the table of a measurement's conditions."""
    conditions = {
        "measured": f"{now.measured_at}, in {now.seconds:.0f} s",
        "options": f"`{now.options}`" if now.options else "",
        "load, before and after": f"{_load(now.load_before)} → {_load(now.load_after)}",
        "machine": now.machine,
        "versions": ", ".join((f"grove {now.commit}", *_versions(now))),
    }
    yield from _header(("condition", ""))
    yield from (_cells((name, value)) for name, value in conditions.items() if value)
    yield ""


def _outcome(one: Measurement) -> str:
    return "left out" if one.left_out else "failed" if one.failed else ""


def _earlier(one: Measurement, name: str) -> tuple[str, ...]:
    """Returns the cells of an earlier value of a row."""
    value = _outcome(one) or _cell(one.ratios.get(name, "no value"))
    judged = one.judged(name) if name in one.ratios else ""
    options = one.options and f"with `{one.options}`"
    said = ", ".join(filter(None, (judged, options)))
    return f"`{name}`", value, said, one.measured_at[:16], _load(one.load_before), one.commit


def _load(load: dict[str, float]) -> str:
    return f"{load['average']:g}, {load['busy_percent']:g} %"


def _versions(one: Measurement) -> list[str]:
    return [_cell(f"{name} {value}") for name, value in one.versions.items()]


def _section(now: Measurement, earlier: list[Measurement]) -> Iterator[str]:
    yield f"## {now.name}\n"
    yield f"{now.about}\n"
    if now.left_out:
        yield f"Left out: {now.left_out}\n"
    if now.failed:
        yield f"Failed: {now.failed}\n"
    yield from _rows(now, earlier)
    yield from _conditions(now)
    if now.figures:
        yield from _header(("figure", ""))
        yield from (_cells((f"`{name}`", _cell(value))) for name, value in now.figures.items())


def _cell(value: Any) -> str:
    return _words(value).replace("|", "\\|").replace("\n", " ")


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_words(inner)}" for key, inner in value.items())
    return ", ".join(map(_words, value)) if isinstance(value, list | tuple) else str(value)
