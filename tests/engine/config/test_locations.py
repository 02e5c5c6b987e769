"""Tests that every field of `RunConfig` is classified as naming a location or not."""

import types
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from engine.config.locations import Kind, Location, ModelPath, locations, relocated
from engine.config.schema import RunConfig
from engine.recipes import load_recipe

PLAIN = (bool, int, float, types.NoneType)
FREE_TEXTS = {
    "recipe": "a name of the record, by a pattern",
    "agents.*.name": "a name, by a pattern",
    "agents.*.role": "text of the prompt, taken as it stands",
    "agents.*.shares_weights_with": "an agent's name, by a pattern",
    "agents.*.lora.target_modules.*": "names of modules of the model that is loaded",
    "agents.*.template_options": "plain values, which a template of a process with limits reads",
    "problems.format": "looked up in the registry of formats",
    "credit.score": "looked up in the registry of rewards",
    "credit.advantage": "looked up in the registry of methods",
    "loss.policy": "looked up in the registry of losses",
    "search.strategy": "looked up in the registry of strategies",
    "search.allocator": "looked up in the registry of allocators",
    "training.sampler": "looked up in the registry of samplers",
    "training.compose": "looked up in the registry of composers",
    "judge.question": "text of the prompt, taken as it stands",
    "evaluation.gauges.*": "looked up in the registry of gauges",
    "environment.name": "looked up in the registry of environments",
    "compute.device": "one of a few, by a pattern",
    "compute.dtype": "one of a few, by a pattern",
    "compute.strategy": "one of a few, by a pattern",
}
"""Texts that name nothing on the machine. A new text field is marked by a type of
`engine.config.locations`, or is added here with the reason why it can never become a file or an
address."""


def leaves(
    kind: Any, path: str = "", marks: tuple[Any, ...] = ()
) -> Iterator[tuple[str, Any, Any]]:
    """(path, plain type, mark or None) of everything that a field of this annotation may hold."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        yield from leaves(arguments[0], path, (*marks, *arguments[1:]))
    elif origin in (Union, types.UnionType):
        for arm in arguments:
            yield from leaves(arm, path, marks)
    elif origin in (tuple, list, set, frozenset):
        for item in arguments:
            if item is not Ellipsis:
                yield from leaves(item, f"{path}.*")
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, info in kind.model_fields.items():
            inner = f"{path}.{name}" if path else name
            yield from leaves(info.annotation, inner, tuple(info.metadata))
    else:
        yield path, kind, next((mark for mark in marks if isinstance(mark, Kind)), None)


def undecided(model: type[BaseModel], free: Any = FREE_TEXTS) -> list[str]:
    """Fields that are not yet classified as naming a location or not."""
    return [
        path
        for path, kind, mark in leaves(model)
        if mark is None
        and path not in free
        and not (isinstance(kind, type) and (kind in PLAIN or issubclass(kind, Enum)))
    ]


MARKED = sorted(path for path, _, mark in leaves(RunConfig) if mark is not None)


def test_each_field_is_marked_as_a_location_or_listed_as_none():
    assert undecided(RunConfig) == []
    assert set(FREE_TEXTS) <= {path for path, *_ in leaves(RunConfig)}, "one is no field any more"
    assert {mark for *_, mark in leaves(RunConfig)} - {None} == set(Kind)


def test_a_field_of_which_nobody_decided_is_noticed_wherever_it_lies():
    class Inner(BaseModel):
        text: str | None = None
        model: ModelPath = ""

    class Planted(BaseModel):
        file: Path
        inner: tuple[Inner, ...]
        maybe: Inner | None
        table: dict[str, str]
        anything: Any
        raw: bytes
        names: list[Annotated[str, "of nothing"]]

    assert undecided(Planted) == [
        "file", "inner.*.text", "maybe.text", "table", "anything", "raw", "names.*",
    ]  # fmt: skip


@pytest.mark.parametrize("path", MARKED)
def test_the_walk_finds_and_changes_each_marked_field(path):
    concrete = path.replace("*", "1")
    config = load_recipe("demo", {concrete: "/somewhere"})
    for data in (config, config.model_dump(), config.model_dump(mode="json")):
        assert [one.path for one in locations(RunConfig, data) if one.value == "/somewhere"] == [
            concrete
        ]
    moved = relocated(config, lambda one: "/there" if one.path == concrete else one.value)
    assert moved == load_recipe("demo", {concrete: "/there"})
    assert relocated(config, lambda one: one.value) is config


def test_the_walk_takes_what_is_no_config_and_goes_into_every_container():
    class Deep(BaseModel):
        one: list[ModelPath] = []
        two: dict[str, tuple[int, ModelPath]] = {}

    data = {"one": ["a", 3], "two": {"x": (1, "b")}, "three": "c"}
    results = [Location("one.0", Kind.MODEL, "a"), Location("two.x.1", Kind.MODEL, "b")]
    assert locations(Deep, data) == locations(Deep, {**data, "one": ("a", 3)}) == results
    moved = relocated(Deep(one=["a"], two={"x": (1, "b")}), lambda one: one.value * 2)
    assert moved == Deep(one=["aa"], two={"x": (1, "bb")})
    for odd in (None, [], "text", {"one": "text", "two": 3}, {"agents": {"0": 1}}):
        assert locations(Deep, odd) == locations(RunConfig, odd) == []
