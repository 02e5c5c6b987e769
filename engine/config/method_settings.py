"""Sections of settings that select methods: tables of the methods' options beside their fields.

`SECTION.METHOD.OPTION` is an option of a method of a registry of the section
(`engine.config.methods`), such as `credit.adora.weight`, whether it is the method selected or not.

Invariant: what is not used and not given is not recorded, so settings do not depend on which
packages are installed. The options of the selected method are recorded whole, with their defaults
(`with_options`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails

from engine.config.base import Settings
from engine.config.methods import REGISTRIES, Registry, option_tables, options_named


class MethodSettings(Settings):
    """Base of such a section; `SECTION` is its name in `RunConfig`."""

    model_config = ConfigDict(extra="allow")
    SECTION: ClassVar[str]

    def options(self, setting: str, name: str = "") -> Any:
        """Returns the options of the method that a setting of this section selects, the one of that
        `name` if it selects several: those given, or its defaults; None if it has none."""
        name = name or getattr(self, setting)
        if (given := (self.__pydantic_extra__ or {}).get(name)) is not None:
            return given
        options = _registry(self.SECTION, setting).methods.options(name)
        return options() if options else None

    def module(self, setting: str) -> Any:
        """Returns the module of the method that a setting of this section selects; None if no run
        can select it."""
        one, name = _registry(self.SECTION, setting), getattr(self, setting)
        return None if one.error(name) else one.methods.source(name)

    @model_validator(mode="wrap")
    @classmethod
    def _with_tables(cls, data: Any, handler: Any) -> Any:
        if not isinstance(data, dict):
            return handler(data)
        values: dict[str, Any] = {}
        errors: list[InitErrorDetails] = []
        for key, value in data.items():
            if key in cls.model_fields:
                values[key] = value
                continue
            options = options_named(cls.SECTION, key) if isinstance(key, str) else None
            if options is None:
                errors.append(InitErrorDetails(type="extra_forbidden", loc=(key,), input=value))
                continue
            try:
                values[key] = options.model_validate(value)
            except ValidationError as error:
                errors += _below(error, key)
        section = None
        try:
            section = handler(values)
        except ValidationError as error:
            errors += _below(error)
        if errors:
            raise ValidationError.from_exception_data(cls.__name__, errors)
        return section

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        schema = handler(core)
        own = handler.resolve_ref_schema(schema)
        for name, options in option_tables(cls.SECTION).items():
            own["properties"][name] = handler(options.__pydantic_core_schema__)
        for one in REGISTRIES:
            if one.section == cls.SECTION:
                of_setting = own["properties"][one.setting]
                (of_setting["items"] if one.many else of_setting)["enum"] = one.names()
        own["additionalProperties"] = False
        return schema


def option_fields(section: type[MethodSettings]) -> dict[str, FieldInfo]:
    """Returns a field for each method of a section that has options, by name."""
    return {
        name: FieldInfo(
            annotation=options,
            default=options(),
            description=(options.__doc__ or f"Options of `{name}`.").strip(),
        )
        for name, options in option_tables(section.SECTION).items()
    }


def settings_fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Returns all settings of a model by name: its fields, and the options of its methods."""
    if issubclass(model, MethodSettings):
        return {**model.model_fields, **option_fields(model)}
    return dict(model.model_fields)


def settings_items(model: BaseModel) -> Iterator[tuple[str, FieldInfo, Any]]:
    """Yields (name, field, value) of all settings of a model; options that are not given have their
    defaults."""
    given = model.__pydantic_extra__ or {}
    for name, info in settings_fields(type(model)).items():
        is_field = name in type(model).model_fields
        yield name, info, getattr(model, name) if is_field else given.get(name, info.default)


def with_options(config: Any) -> Any:
    """Returns a `RunConfig` that records the options of every method it selects."""
    for one in REGISTRIES:
        for name in one.selected(getattr(getattr(config, one.section), one.setting)):
            section = getattr(config, one.section)
            if not isinstance(section, MethodSettings):
                continue
            if name in (section.__pydantic_extra__ or {}):
                continue
            if (options := section.options(one.setting, name)) is not None:
                extended = section.model_copy(update={name: options})
                config = config.model_copy(update={one.section: extended})
    return config


def _registry(section: str, setting: str) -> Registry:
    return next(one for one in REGISTRIES if (one.section, one.setting) == (section, setting))


def _below(error: ValidationError, *at: str) -> list[InitErrorDetails]:
    """Returns the errors of a part of the settings, as those of the whole."""
    return [
        InitErrorDetails(
            type=one["type"], loc=(*at, *one["loc"]), input=one["input"], ctx=one.get("ctx", {})
        )
        for one in error.errors(include_url=False)
    ]
