"""Comparison of runs: settings that differ, curves, and paired evaluations.

Invariants: the first run is the baseline; evaluations are compared on the problems that both runs
were evaluated on, matched by content; an interval that contains 0 is never reported as a
difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.config.errors import ConfigError
from engine.config.schema import parse_config
from webapp.comparison.intervals import CONFIDENCE, Aligned, Budget, interval
from webapp.experiments.models import Run
from webapp.experiments.run_settings.settings_schema import dotted, flat
from webapp.experiments.run_settings.toml import value_text
from webapp.experiments.tracked_runs import config_of
from webapp.telemetry.models import Event
from webapp.telemetry.presentation import charts_of

MOST_RUNS = 8
SPLITS = ("test", "validation")
_IGNORED = {"recipe_version"}
CURVES = ("validation.agent", "validation.tree", "validation.samples", "reward", "solved",
          "entropy", "kl", "step.seconds")  # fmt: skip
"""Metrics that are drawn, each with all its parts (`entropy.oak`)."""


@dataclass(frozen=True)
class Difference:
    """One figure of two evaluations. `sentence` describes it in words."""

    figure: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    problems: int
    sentence: str


@dataclass(frozen=True)
class Pair:
    """Comparison of a run with the first one; `missing` gives the reason if it has no figure."""

    run: Run
    label: str
    split: str
    steps: tuple[int, int] | None
    figures: list[Difference]
    missing: str = ""


def page(runs: Sequence[Run], split: str) -> dict[str, Any]:
    """Returns the template's context, see `views.compare`."""
    names = labels_of(runs)
    context = {
        "compared": labelled(runs),
        "split": split,
        "splits": SPLITS,
        "page": {"labels": names, "curves": CURVES, "runs": []},
    }
    if len(runs) < 2:
        return context
    return context | {
        "settings": settings_that_differ(runs),
        "pairs": pairs(runs, split),
        "confidence": f"{100 * CONFIDENCE:.0f} %",
        "page": {"labels": names, "curves": CURVES, "runs": charted(runs)},
    }


def labels_of(runs: Sequence[Run]) -> list[str]:
    """Returns A, B, C ...: the labels of the runs in tables and sentences."""
    return [chr(ord("A") + index) for index in range(len(runs))]


def settings_that_differ(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Returns [{path, values}] of settings that are not the same in all runs; a value as TOML, or
    None where a run has no such setting."""
    flattened = [_flattened(run) for run in runs]
    paths = dict.fromkeys(path for settings in flattened for path in settings)
    rows = []
    for path in paths:
        values = [value_text(one[path]) if path in one else None for one in flattened]
        if path not in _IGNORED and len(set(values)) > 1:
            rows.append({"path": path, "values": values})
    return rows


def _flattened(run: Run) -> dict[str, Any]:
    return dotted(config_of(run)) if run.tracked else flat(_with_defaults(run.config))


def _with_defaults(config: dict[str, Any]) -> dict[str, Any]:
    """Adds defaults: a run of an older version lacks settings that were added since."""
    try:
        return parse_config(config).model_dump(mode="json")
    except ConfigError:
        return config


def pairs(runs: Sequence[Run], split: str) -> list[Pair]:
    """Compares every other run with the first, on the newest evaluation of a split."""
    outcomes = [_newest(run, split) for run in runs]
    names, budget = labels_of(runs), Budget()
    return [
        _pair(run, (names[0], label), split, outcomes[0], other, budget)
        for run, label, other in zip(runs[1:], names[1:], outcomes[1:], strict=True)
    ]


def _newest(run: Run, split: str) -> dict[str, Any] | None:
    events = Event.objects.filter(run=run, kind="eval.outcomes", payload__split=split)
    payload = events.order_by("-seq").values_list("payload", flat=True).first()
    return payload if payload and payload["contents"] else None


def _pair(
    run: Run,
    names: tuple[str, str],
    split: str,
    a: dict | None,
    b: dict | None,
    budget: Budget,
) -> Pair:
    if a is None or b is None:
        missing = " and ".join(name for name, one in zip(names, (a, b), strict=True) if one is None)
        reason = f"no per-problem results of {missing} on the {split} split yet"
        return Pair(run, names[1], split, None, [], reason)
    steps = (a["step"], b["step"])
    figures = differences(names, a, b, budget)
    reason = "" if figures else "the evaluations have no common problems or agents"
    return Pair(run, names[1], split, steps, figures, reason)


def differences(names: tuple[str, str], a: dict, b: dict, budget: Budget) -> list[Difference]:
    """Returns every figure that two `eval.outcomes` payloads share on common problems."""
    aligned = Aligned(a, b)
    results = []
    for figure in aligned.figures():
        before, after = aligned.values(figure)
        if not len(before):
            continue
        one = interval(before, after, budget)
        results.append(
            Difference(
                figure,
                float(before.mean()),
                float(after.mean()),
                one.difference,
                one.low,
                one.high,
                len(before),
                sentence(names, one.difference, one.low, one.high, len(before)),
            )
        )
    return results


def sentence(
    names: tuple[str, str], difference: float, low: float, high: float, problems: int
) -> str:
    """Returns "B is 4.1 points above A, 95 % interval 0.9 to 7.4, 300 problems"; differences are
    shares."""
    one, other = names
    is_certain = low > 0 or high < 0
    bounds = (-high, -low) if is_certain and difference < 0 else (low, high)
    interval = f"{100 * CONFIDENCE:.0f} % interval {100 * bounds[0]:.1f} to {100 * bounds[1]:.1f}"
    detail = f"{interval}, {problems} problems"
    if not is_certain:
        text = f"{other} minus {one} is {100 * difference:.1f} points, {detail}"
        return f"No difference is certain: {text}"
    side = "above" if difference > 0 else "below"
    return f"{other} is {100 * abs(difference):.1f} points {side} {one}, {detail}"


def charted(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Returns the runs as charts need them (`telemetry.presentation`), by their labels."""
    return [charts_of(run) | {"label": name} for run, name in labelled(runs)]


def labelled(runs: Sequence[Run]) -> list[tuple[Run, str]]:
    return list(zip(runs, labels_of(runs), strict=True))


def is_curve(name: str) -> bool:
    """Returns whether a comparison draws the metric."""
    return any(name == one or name.startswith(f"{one}.") for one in CURVES)
