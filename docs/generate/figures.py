"""The README's table of figures, from the record of all measurements."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.record import Measurement, load_record

RECORD = Path(__file__).resolve().parents[1] / "benchmarks.json"
ROWS = (
    ("sandbox", "vs_fresh_python", "verifying a program, against a fresh Python without isolation"),
    (
        "search",
        "vs_treequest_step_64",
        "search per node, trees of 64, against TreeQuest's `step()`",
    ),
    ("step", "vs_trl", "a GRPO step, statements with examples, against TRL"),
    ("step", "vs_trl_bare", "the same, statements without examples"),
    (
        "prefix_training",
        "p512_r64_g8",
        "an update from 8 answers to one prompt, against padded rows",
    ),
    ("api", "read_100k_series_vs_mlflow", "reading a series of 100,000 points, against MLflow"),
)
"""(measurement, ratio, label)."""
_MARKED = re.compile(r"(<!-- figures: [^\n]*-->\n).*?(<!-- end of figures -->)", re.DOTALL)


def with_figures(text: str) -> str:
    """Returns the README with the table between its two markers rewritten."""
    return _MARKED.sub(lambda match: match[1] + _table() + match[2], text)


def _table() -> str:
    record = load_record(RECORD)
    lines = [_line(*row, record.of(row[0])) for row in ROWS]
    return "\n".join(["| measurement | times as fast | goal |", "|---|---|---|", *lines]) + "\n\n"


def _line(name: str, ratio: str, words: str, measured: list[Measurement]) -> str:
    newest = measured[0]
    value = newest.ratios.get(ratio)
    shown = "not measured" if value is None else f"{value:.3g}"
    return f"| {words} | {shown} | {newest.goal(ratio) or ''} ({newest.judged(ratio)}) |"
