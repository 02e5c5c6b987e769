"""The page of the docs that holds what was measured, written from the measurements' own words."""

from __future__ import annotations

import datetime
import importlib
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import MEASUREMENTS, Goal

if TYPE_CHECKING:
    from benchmarks.everything import Outcome

HEAD = """# Benchmarks

Written by `python -m benchmarks all` on {date}, on {machine}; do not edit it by hand. A ratio is
how many times better Grove is than the peer that it names, both measured in turns in one run, and
is only told where that run found that both did the same work. `python -m benchmarks NAME` measures
one of them again.
"""


def document(outcomes: Sequence[Outcome]) -> str:
    """The whole page, in Markdown."""
    parts = [HEAD.format(date=datetime.date.today().isoformat(), machine=machine())]
    parts.append("\n".join(_summary(outcomes)))
    parts += ["\n".join(_section(outcome)) for outcome in outcomes]
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def machine() -> str:
    """The processor, its cores that this process may use, and Python."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{_processor()}, {cores} cores, Python {platform.python_version()}"


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text("utf-8").splitlines() if file.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names or [platform.processor() or platform.machine()])[0]


def _summary(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield "| measurement | ratio | measured | goal | |"
    yield "|---|---|---|---|---|"
    for outcome in outcomes:
        goals = _module(outcome.name).GOALS
        for name, ratio in outcome.result.get("ratios", {}).items():
            goal: Goal | None = goals.get(name)
            judged = "" if goal is None else "met" if goal.met(ratio) else "missed"
            yield f"| {outcome.name} | `{name}` | {ratio} | {goal or ''} | {judged} |"
        if outcome.left_out or outcome.failed:
            why = "left out" if outcome.left_out else "failed"
            yield f"| {outcome.name} | | | | {why} |"


def _section(outcome: Outcome) -> Iterator[str]:
    module = _module(outcome.name)
    yield f"## {outcome.name}\n"
    yield f"{module.__doc__.strip()}\n"
    if outcome.left_out:
        yield f"Left out: {outcome.left_out}"
    if outcome.failed:
        yield f"Failed: {outcome.failed}"
    if outcome.result:
        yield "| figure | |"
        yield "|---|---|"
        for name, value in outcome.result["figures"].items():
            yield f"| `{name}` | {_cell(value)} |"
        versions = (f"{name} {value}" for name, value in outcome.result["versions"].items())
        yield f"\nVersions: {', '.join(versions)}. It took {outcome.seconds:.0f} s."


def _cell(value: Any) -> str:
    return _words(value).replace("|", "\\|").replace("\n", " ")


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_words(inner)}" for key, inner in value.items())
    return ", ".join(map(_words, value)) if isinstance(value, list | tuple) else str(value)


def _module(name: str) -> Any:
    return importlib.import_module(f"benchmarks.{MEASUREMENTS[name]}")
