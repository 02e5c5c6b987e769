"""Whether the methods that settings select can be selected, and go together.

A method says in its module what it needs of others and what it makes for them
(`engine.config.columns`); no method is known here by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.config.columns import LOSS_TENSORS, ROW_COLUMNS, names_of
from engine.config.methods import REGISTRIES, Registry, registry

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
    return errors or [*_unmade(config), *_unfit_composer(config)]


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
    yield {"path": losses.path, "value": _name(losses, config), "reason": reason}


def _unfit_composer(config: Any) -> Iterator[Error]:
    """Yields an error if the composer does not go with the other methods."""
    composers, losses = registry("composers"), registry("losses")
    source, name = _selected(composers, config), _name(composers, config)

    def error(path: str, value: str, reason: str) -> Error:
        return {"path": path, "value": value, "reason": reason}

    follows = names_of(source, "ADVANTAGES")
    if follows and config.credit.advantage not in follows:
        names = " or ".join(sorted(follows))
        reason = f"training.compose = {name} compares rows anew, as {names} does; set it to {names}"
        yield error("credit.advantage", config.credit.advantage, reason)
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
        yield error(losses.path, config.loss.policy, reason)
    if not config.environment.judges_programs:
        reason = (
            f"shows reference programs, which environment.name = {config.environment.name} does "
            "not have; choose all"
        )
        yield error(composers.path, name, reason)


def _name(one: Registry, config: Any) -> str:
    return getattr(getattr(config, one.section), one.setting)


def _selected(one: Registry, config: Any) -> Any:
    return one.methods.source(_name(one, config))
