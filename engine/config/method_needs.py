"""Whether the methods that settings select can be selected, and go together.

A method says in its module what it needs of others and what it makes for them
(`engine.config.columns`); no method is known here by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.config.columns import LOSS_TENSORS, ROW_COLUMNS, names_of
from engine.config.methods import REGISTRIES, Registry, registry
from engine.config.misfits import Misfit, misfits

DEMONSTRATIONS = "demonstrations"
"""What a composer `MAKES` that shows answers which the policy did not sample."""
Error = dict[str, Any]
"""path, value, reason"""


def method_errors(config: Any) -> list[Error]:
    """Returns an error for each method that a `RunConfig` cannot select."""
    errors = [
        {"path": f"{one.path}.{index}" if one.many else one.path, "value": name, "reason": reason}
        for one in REGISTRIES
        for index, name in enumerate(
            one.selected(getattr(getattr(config, one.section), one.setting))
        )
        if (reason := one.error(name))
    ]
    return errors or [
        *_unmade(config),
        *_unfit_composer(config),
        *_cut_trees(config),
        *_without_dual_clip(config),
        *(_error(one.path, one.value, one.reason) for one in misfits(config) if one.refused),
    ]


def columns_needed(config: Any) -> frozenset[str]:
    """Returns the columns of nodes or rows that the selected methods of a `RunConfig` need."""
    kinds = ("advantages", "losses", "composers")
    return frozenset().union(*(names_of(_selected(registry(k), config), "NEEDS") for k in kinds))


def _unmade(config: Any) -> Iterator[Error]:
    """Yields an error if the loss needs something that neither advantage nor composer makes."""
    losses, makers = registry("losses"), (registry("advantages"), registry("composers"))
    given = ROW_COLUMNS | set(LOSS_TENSORS) - {DEMONSTRATIONS}
    given |= {name for one in makers for name in names_of(_selected(one, config), "MAKES")}
    if not (missing := names_of(_selected(losses, config), "NEEDS") - given):
        return
    candidates = [
        f"{one.path} = {name}"
        for one in makers
        for name in one.names()
        if missing <= names_of(one.methods.source(name), "MAKES")
    ]
    chosen = " nor ".join(f"{one.path} = {_name(one, config)}" for one in makers)
    reason = (
        f"needs {', '.join(sorted(missing))} of every row, which neither {chosen} makes; choose "
        f"{' or '.join(candidates) or 'another loss'}"
    )
    yield _error(losses.path, _name(losses, config), reason)


def _unfit_composer(config: Any) -> Iterator[Error]:
    """Yields an error if the composer does not go with the other methods."""
    composers, losses = registry("composers"), registry("losses")
    source, name = _selected(composers, config), _name(composers, config)

    follows = names_of(source, "ADVANTAGES")
    if follows and config.credit.advantage not in follows:
        names = " or ".join(sorted(follows))
        reason = f"training.compose = {name} compares rows anew, as {names} does; set it to {names}"
        yield _error("credit.advantage", config.credit.advantage, reason)
    if DEMONSTRATIONS not in names_of(source, "MAKES"):
        return
    if DEMONSTRATIONS not in names_of(_selected(losses, config), "NEEDS"):
        able = [
            one
            for one in losses.names()
            if DEMONSTRATIONS in names_of(losses.methods.source(one), "NEEDS")
        ]
        reason = (
            f"would take the demonstrations of training.compose = {name} for the policy's own "
            f"answers; choose {' or '.join(able)}"
        )
        yield _error(losses.path, config.loss.policy, reason)
    if not config.environment.judges_programs:
        reason = (
            f"shows reference programs, which environment.name = {config.environment.name} does "
            "not have; choose all"
        )
        yield _error(composers.path, name, reason)


def _cut_trees(config: Any) -> Iterator[Error]:
    """Yields an error if the loss compares all rows of a tree and the composer cuts trees up."""
    composers = registry("composers")
    if getattr(_selected(composers, config), "CUTS_TREES", False) and hasattr(
        _selected(registry("losses"), config), "over_minibatch"
    ):
        reason = (
            f"repeats rows of a tree and leaves some out, and loss.policy = {config.loss.policy} "
            "compares all rows of a tree; choose another of the two"
        )
        yield _error(composers.path, _name(composers, config), reason)


def _without_dual_clip(config: Any) -> Iterator[Error]:
    """Yields an error if a dual clip is set, and the loss has none."""
    losses, dual_clip = registry("losses"), config.loss.dual_clip
    if dual_clip is None or getattr(_selected(losses, config), "DUAL_CLIPS", False):
        return
    able = [one for one in losses.names() if getattr(losses.methods.source(one), "DUAL_CLIPS", 0)]
    reason = (
        f"has no effect on loss.policy = {config.loss.policy}; leave it unset, or choose "
        f"{' or '.join(able)}"
    )
    yield _error("loss.dual_clip", dual_clip, reason)


def unread(config: Any) -> Iterator[Misfit]:
    """Yields a warning if the loss does not read what the advantage makes for one."""
    losses, advantages = registry("losses"), registry("advantages")
    makes = names_of(_selected(advantages, config), "MAKES")
    if not (missed := makes - names_of(_selected(losses, config), "NEEDS")):
        return
    able = [
        one for one in losses.names() if missed <= names_of(losses.methods.source(one), "NEEDS")
    ]
    reason = (
        f"does not read {', '.join(sorted(missed))}, which {advantages.path} = "
        f"{config.credit.advantage} makes for it; choose {' or '.join(able) or 'another advantage'}"
    )
    yield Misfit(losses.path, config.loss.policy, reason, refused=False)


def _error(path: str, value: Any, reason: str) -> Error:
    return {"path": path, "value": value, "reason": reason}


def _name(one: Registry, config: Any) -> str:
    return getattr(getattr(config, one.section), one.setting)


def _selected(one: Registry, config: Any) -> Any:
    return one.methods.source(_name(one, config))
