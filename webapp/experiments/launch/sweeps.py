"""Plan of an experiment: settings, seeds and values to try, as its runs.

Pure except for reading recipes. Invariant: either the settings of every run of a plan are valid, or
there is no plan; each run's `variant` is all that distinguishes it from the others.
"""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.config.errors import ConfigError
from engine.config.schema import RunConfig, parse_config
from engine.recipes import override, recipe_data
from webapp.experiments.run_settings.overrides import parse_overrides

MOST_RUNS = 64
"""Runs of one experiment at its creation."""
_RANGE = re.compile(r"(\d{1,10})(?:\s*-\s*(\d{1,10}))?")


@dataclass(frozen=True)
class Request:
    """A requested experiment. `base` is the settings of another run, in place of the recipe's."""

    recipe: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    seeds: Sequence[int] = ()
    sweep: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Values to try, by path; every combination is a run."""
    base: Mapping[str, Any] | None = None
    given: Mapping[str, Any] | None = None
    """`Run.given` of that run: a clone of a run that waits is completed as the run will be."""
    base_is_located: bool = False
    """Whether `paths.located` resolved the paths in `base`: those of the site's own runs, never
    those of a run of an external engine."""

    def to_config(self) -> dict[str, Any]:
        """Returns the request for the experiment's `config`."""
        config: dict[str, Any] = {"recipe": self.recipe, "overrides": dict(self.overrides)}
        if self.seeds:
            config["seeds"] = list(self.seeds)
        if self.sweep:
            config["sweep"] = {path: list(values) for path, values in self.sweep.items()}
        return config


@dataclass(frozen=True)
class Planned:
    """One planned run of the experiment."""

    config: RunConfig
    variant: dict[str, Any]
    """Path to value of the settings that the experiment varies."""
    given: dict[str, Any] | None = None
    """As `Run.given`; None for the settings of a run that was completed."""


def plan(request: Request) -> list[Planned]:
    """Returns the runs of the request, in the order of its seeds and values.

    Raises:
        ConfigError: with every fault of the first run that cannot start, or of the sweep.
    """
    axes = dict(request.sweep)
    if request.seeds:
        axes["seed"] = list(request.seeds)
    if problems := _axis_problems(axes, request.overrides):
        raise ConfigError(problems)
    return [
        _planned(request, dict(zip(axes, values, strict=True)))
        for values in itertools.product(*axes.values())
    ]


def _planned(request: Request, variant: dict[str, Any]) -> Planned:
    changes = {**request.overrides, **variant}
    if request.base is None:
        given = recipe_data(request.recipe, changes)
        return Planned(parse_config(given), variant, given)
    config = parse_config(_changed(request.base, changes))
    given = None if request.given is None else _changed(request.given, changes)
    return Planned(config, variant, given)


def _changed(data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    copied = copy.deepcopy(dict(data))
    override(copied, changes)
    return copied


def _axis_problems(
    axes: Mapping[str, Sequence[Any]], overrides: Mapping[str, Any]
) -> list[dict[str, Any]]:
    problems = []
    runs = 1
    for path, values in axes.items():
        runs *= len(values)
        if not values:
            problems.append({"path": path, "value": [], "reason": "give at least one value to try"})
        elif len(values) <= MOST_RUNS and any(values[i] in values[:i] for i in range(len(values))):
            problems.append({"path": path, "value": "...", "reason": "a value is given twice"})
        if path in overrides:
            reason = "is both set and varied; leave one of the two out"
            problems.append({"path": path, "value": overrides[path], "reason": reason})
    if runs > MOST_RUNS:
        reason = f"these are {runs} runs; an experiment starts {MOST_RUNS} at most"
        problems.append({"path": "sweep", "value": runs, "reason": reason})
    return problems


def parse_seeds(text: str) -> list[int]:
    """Parses "1-3, 7" as [1, 2, 3, 7]; an empty text as [].

    Raises:
        ConfigError: it is no list of integers and ranges, or is too long.
    """
    seeds: list[int] = []
    for part in filter(None, map(str.strip, text.split(","))):
        match = _RANGE.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last - first >= MOST_RUNS or last >= 2**31:
            reason = f"write seeds as in 1-3, 7: whole numbers, {MOST_RUNS} at most"
            raise ConfigError([{"path": "seeds", "value": part, "reason": reason}])
        seeds += range(first, last + 1)
    return seeds


def parse_sweep(text: str) -> dict[str, list[Any]]:
    """Parses one `path = value, value` per line.

    Raises:
        ConfigError: a line is invalid.
    """
    listed = "\n".join(map(_listed, text.splitlines()))
    overrides = parse_overrides(listed)
    return {path: _values(value) for path, value in overrides.items()}


def _values(value: Any) -> list[Any]:
    """Returns the values; a single list in brackets, `[1, 2]`, means its items."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        return value[0]
    return value if isinstance(value, list) else [value]


def _listed(line: str) -> str:
    path, equals, values = line.partition("=")
    if not equals or line.lstrip().startswith("#"):
        return line
    return f"{path} = {_as_list(values.strip())}"


def _as_list(values: str) -> str:
    """Returns comma-separated values as a TOML list; bare words become strings."""
    try:
        parsed = parse_overrides(f"value = [{values}]")["value"]
    except ConfigError:
        parsed = values
    if isinstance(parsed, list):
        return f"[{values}]"
    quoted = (part.strip() for part in values.split(","))
    return "[" + ", ".join(_word(part) for part in quoted if part) + "]"


def _word(part: str) -> str:
    parsed = parse_overrides(f"value = [{part}]").get("value")
    return part if isinstance(parsed, list) else '"' + part.replace('"', "") + '"'
