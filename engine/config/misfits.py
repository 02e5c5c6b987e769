"""Settings that do not go with a method, as the method's own module says.

A module may hold `misfits(config)`, which yields a `Misfit` for each setting of a `RunConfig` with
which the method would do something else than it says. Those that make no sense are refused with the
settings (`engine.config.method_needs`); of the others a run warns before it starts
(`engine.config.setting_warnings`). No method is known here by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.config.methods import REGISTRIES, Registry, registry


@dataclass(frozen=True)
class Misfit:
    """One setting, and why it does not go with a method."""

    path: str
    """The setting to change."""
    value: Any
    reason: str
    """Names the method's own setting, and the remedy."""
    refused: bool = True
    """Whether no run may begin so; otherwise it is a warning."""


def misfits(config: Any) -> list[Misfit]:
    """Returns the misfits of all methods that a `RunConfig` uses."""
    return [
        misfit
        for one in REGISTRIES
        for name in _used(one, config)
        for misfit in _of_method(one, name, config)
    ]


def filtered_trees(config: Any, method: str, why: str, *, refused: bool = True) -> Iterator[Misfit]:
    """Yields a misfit if the dynamic filter leaves out trees that a method learns from. `method` is
    the path of the setting that selects it, `why` what it learns from them."""
    if config.credit.dynamic_filter:
        section, setting = method.split(".")
        reason = (
            f"leaves out trees of equal scores, and {method} = "
            f"{getattr(getattr(config, section), setting)} {why}; set credit.dynamic_filter to "
            f"false, or choose another {method}"
        )
        yield Misfit("credit.dynamic_filter", True, reason, refused)


def rarely_seen(config: Any, method: str) -> Iterator[Misfit]:
    """Yields a warning if a method goes by what earlier steps say of a problem, and hardly any
    generated problem occurs twice."""
    plan, problems = config.training, config.problems
    trees = plan.steps * plan.trees_per_step
    if problems.dataset == "generated" and trees <= problems.train:
        section, setting = method.split(".")
        reason = (
            f"with {method} = {getattr(getattr(config, section), setting)}, which goes by what "
            f"earlier steps say of a problem: {plan.steps} steps of {plan.trees_per_step} trees "
            "hardly meet one twice; set problems.train to a few hundred"
        )
        yield Misfit("problems.train", problems.train, reason, refused=False)


def parts_in_use(config: Any) -> dict[str, float]:
    """Returns the weights of the parts that the reward has alongside the score, by name; of those
    whose settings are options."""
    given = sorted((config.credit.__pydantic_extra__ or {}).items())
    weights = {name: getattr(options, "weight", 0.0) for name, options in given}
    return {name: weight for name, weight in weights.items() if weight and _is_part(name)}


def _used(one: Registry, config: Any) -> list[str]:
    """Returns the methods of a registry that settings select, and the gates and parts in use."""
    names = list(one.selected(getattr(getattr(config, one.section), one.setting)))
    if one.kind == "rewards":
        given = config.credit.__pydantic_extra__ or {}
        gates = [name for name, one in given.items() if getattr(one, "gate", False)]
        names += sorted({*parts_in_use(config), *gates} - {*names})
    return [name for name in names if name not in one.others]


def _is_part(name: str) -> bool:
    rewards = registry("rewards").methods
    return name in rewards.own or name in rewards.sound()


def _of_method(one: Registry, name: str, config: Any) -> list[Misfit]:
    hook = getattr(one.methods.source(name), "misfits", None)
    if hook is None:
        return []
    try:
        return list(hook(config))
    except Exception as error:  # whatever the module of another package raises
        reason = f"its function misfits raised {type(error).__name__}: {error}; correct the module"
        return [Misfit(one.path, name, reason)]
