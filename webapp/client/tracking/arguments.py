"""Arguments of `init`: what a program gives, W&B's `Settings`, and what a stand-in adds, as one.

Invariant: an argument counts before a setting of W&B's, and that before its environment variable.
W&B's variables are read only where Grove stands in for W&B (`grove.integrations.wandb`), and only
if the variable of Grove's own is not set.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from webapp.client.tracking.run_config import settings_of
from webapp.client.tracking.start import InitRefused, new_key

_SETTINGS = {
    "project": "project", "entity": "entity", "name": "run_name", "id": "run_id",
    "group": "run_group", "tags": "run_tags", "notes": "run_notes", "dir": "root_dir",
    "mode": "mode", "resume": "resume", "reinit": "reinit",
}  # fmt: skip
"""Name of W&B's setting by argument."""
_VARIABLES = {
    "project": ("WANDB_PROJECT", "GROVE_PROJECT"), "name": ("WANDB_NAME", "GROVE_NAME"),
    "id": ("WANDB_RUN_ID", "GROVE_RUN_ID"), "group": ("WANDB_RUN_GROUP", ""),
    "tags": ("WANDB_TAGS", ""), "notes": ("WANDB_NOTES", ""), "mode": ("WANDB_MODE", "GROVE_MODE"),
    "resume": ("WANDB_RESUME", "GROVE_RESUME"),
}  # fmt: skip
"""W&B's variable and Grove's own by argument."""
_BRANCHES = ("resume_from", "fork_from")
_YES = ("true", "1", "yes", "on")
_place: dict[str, str] = {}
"""Project and entity of every run while Grove stands in for W&B."""
_is_stand_in: list[bool] = []


def stand_in(project: str | None, entity: str | None) -> None:
    """Has W&B's variables read from now on, and every run be of this project, if one is given or
    `GROVE_PROJECT` is set: libraries name projects of W&B's."""
    _is_stand_in.append(True)
    if chosen := project or os.environ.get("GROVE_PROJECT"):
        _place.update(project=str(chosen), entity=entity or "")


def resolved(given: Mapping[str, Any], settings: Any) -> dict[str, Any]:
    """Returns the arguments of a run; `settings` are W&B's, by name or as an object.

    Raises:
        InitRefused: the run would branch from a step of another one.
    """
    for name in _BRANCHES:
        if given.get(name) is not None:
            raise InitRefused(
                f"{name} = {given[name]!r}: a run continues at its end alone; give its id and "
                "resume='must', or fork a run of Grove's engine on its page"
            )
    named = settings_of(settings)
    made = {
        name: named.get(field) if given.get(name) is None else given[name]
        for name, field in _SETTINGS.items()
    }
    if _is_stand_in:
        made = {name: _of_environment(name) if value is None else value
                for name, value in made.items()}  # fmt: skip
    made |= _place
    for name in ("name", "id", "group", "notes"):
        if made[name] is not None:
            made[name] = str(made[name])
    return _alone(made, named) if made["mode"] == "shared" else made


def selected(config: Any, exclude: Any, include: Any) -> Any:
    """Returns the settings without those that the program keeps out by name, or those alone that
    it names.

    Raises:
        InitRefused: both are given, or `config` is nothing that has settings.
    """
    if isinstance(config, str | os.PathLike):
        raise InitRefused(f"config = {str(config)!r}: give the settings that the file holds")
    if exclude and include:
        raise InitRefused("config_exclude_keys, config_include_keys: give one of the two")
    try:
        found = settings_of(config)
    except TypeError as error:
        raise InitRefused(str(error)) from None
    if include:
        return {name: value for name, value in found.items() if name in include}
    return {name: value for name, value in found.items() if name not in (exclude or ())}


def _of_environment(name: str) -> Any:
    theirs, ours = _VARIABLES.get(name, ("", ""))
    if ours and os.environ.get(ours):
        return None  # read where the run starts
    value = os.environ.get(theirs) or None
    if name == "mode" and os.environ.get("WANDB_DISABLED", "").lower() in _YES:
        return value or "disabled"
    if name == "tags" and value:
        return [one for one in value.split(",") if one.strip()]
    return value


def _alone(made: dict[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a process of W&B's mode `shared`: the primary one logs to the run,
    each other one to a run of its own in the group of that id."""
    if named.get("x_primary", True):
        return {**made, "mode": "online"}
    shared, label = made["id"] or new_key(), named.get("x_label") or new_key(4)
    return {
        **made, "mode": "online", "id": f"{shared}-{label}", "resume": "allow",
        "name": made["name"] or f"{shared} {label}", "group": made["group"] or shared,
    }  # fmt: skip
