"""Settings that name a location on the engine's machine: types that mark them, a walk over them.

Invariant: every field of `RunConfig` that names a file, a directory or an address has a type of
this module. Code that accepts settings from other people resolves or refuses all that `locations`
returns, and keeps no list of fields of its own (`webapp.experiments.run_settings.paths`).
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)

HUB = "hf:"
"""Prefix of `hf:ORG/NAME@REVISION`, a model or a data set of a Hugging Face hub (`engine.hub`)."""


class Kind(Enum):
    """Kind of object at a location."""

    MODEL = auto()
    """A directory of weights, or the address of an endpoint."""
    DATASET = auto()
    """A file or folder of problems."""
    CHAT_TEMPLATE = auto()
    """A Jinja file, whose text becomes part of every prompt."""
    REWARD_MODEL = auto()
    """A directory of a reward model."""
    ENDPOINT = auto()
    """The address of a server that answers requests."""
    CLUSTER = auto()
    """The address of a Ray cluster, which runs its own code in every process that joins it."""


ModelPath = Annotated[str, Kind.MODEL]
DatasetPath = Annotated[str, Kind.DATASET]
ChatTemplatePath = Annotated[str, Kind.CHAT_TEMPLATE]
RewardModelPath = Annotated[str, Kind.REWARD_MODEL]
EndpointAddress = Annotated[str, Kind.ENDPOINT]
ClusterAddress = Annotated[str, Kind.CLUSTER]


@dataclass(frozen=True, slots=True)
class Location:
    """One setting that names a location; `path` is dotted, with list items by index."""

    path: str
    kind: Kind
    value: str


def locations(model: type[BaseModel], data: Any) -> list[Location]:
    """Returns each location that settings of type `model` name, without those that are unset.

    `data` is an instance, or plain data, which may lack fields or have others.
    """
    result: list[Location] = []

    def record(location: Location) -> str:
        result.append(location)
        return location.value

    _walk(model, "", data, record)
    return result


def relocated(config: M, change: Callable[[Location], str]) -> M:
    """Returns the settings with each location replaced by what `change` returns for it, not
    validated again."""
    return _walk(type(config), "", config, change)


def _walk(kind: Any, path: str, value: Any, change: Callable[[Location], str]) -> Any:
    """Returns `value`, annotated as `kind`, after the change; a value that does not fit the
    annotation is returned unchanged."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        inner, *marks = arguments
        marked = next((mark for mark in marks if isinstance(mark, Kind)), None)
        if marked and isinstance(value, str):
            return change(Location(path, marked, value))
        return _walk(inner, path, value, change)
    if origin in (Union, types.UnionType):
        for arm in arguments:
            value = _walk(arm, path, value, change)
        return value
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _walk_model(kind, path, value, change)
    if origin in (list, tuple) and isinstance(value, (list, tuple)):
        items = [
            _walk(item, _join(path, index), one, change)
            for index, (item, one) in enumerate(_paired(origin, arguments, value))
        ]
        return value if items == list(value) else type(value)(items)
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        return {key: _walk(arguments[1], _join(path, key), one, change)
                for key, one in value.items()}  # fmt: skip
    return value


def _walk_model(
    model: type[BaseModel], path: str, value: Any, change: Callable[[Location], str]
) -> Any:
    if isinstance(value, Mapping):
        given = dict(value)
    elif isinstance(value, BaseModel):
        given = {name: getattr(value, name) for name in model.model_fields}
    else:
        return value
    changed: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        if name not in given:
            continue
        before = given[name]
        annotation: Any = info.annotation
        kind: Any = Annotated[annotation, *info.metadata] if info.metadata else annotation
        after = _walk(kind, _join(path, name), before, change)
        if after is not before:
            changed[name] = after
    if not changed:
        return value
    if isinstance(value, BaseModel):
        return value.model_copy(update=changed)
    return {**given, **changed}


def _paired(origin: Any, kinds: tuple[Any, ...], values: Any) -> Iterator[tuple[Any, Any]]:
    """Yields each item with its annotation."""
    if origin is tuple and not (len(kinds) == 2 and kinds[1] is Ellipsis):
        return zip(kinds, values, strict=False)
    return ((kinds[0], one) for one in values)


def _join(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)
