"""Registries of methods: the one table of where they are and which setting selects one.

A method is one module. It may hold `Options`, a frozen class of its own settings
(`engine.config.method_settings`), and `FIGURES`, the numbers that it reports. A registry is a
`Methods` in a package of `REGISTRIES`: one line per method of the engine; entry points of the group
`grove.KIND` add those of other packages.

Invariants:
- The module of a method imports neither torch nor ray on import: the site reads its options.
- A name has one meaning: a plug-in whose name is taken is broken.
- A broken plug-in is named and left out; a run that selects it is refused with the reason.
- Packages are imported at the first use of a registry, never when this module is.
"""

from __future__ import annotations

import importlib
import logging
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any, Generic, TypeVar

from engine.config.base import Settings
from engine.config.option_fields import options_fault
from engine.config.plugins import Plugin, PluginError, plugins

Method = TypeVar("Method")
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
"""Names of methods."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Figure:
    """How a number that a method reports is charted."""

    title: str
    unit: str = ""
    """Shown behind values, such as `nats`; `share` for fractions of a whole."""
    section: str = "Training health"
    """Section of the charts' page."""


@dataclass(frozen=True)
class Registry:
    """One row of the table."""

    kind: str
    """Entry points are of the group `grove.KIND`."""
    section: str
    setting: str
    """`SECTION.SETTING` selects a method; `SECTION.METHOD` holds its options."""
    package: str
    attribute: str
    """The `Methods` is this attribute of the package."""
    others: tuple[str, ...] = ()
    """Values of the setting that name no method."""
    many: bool = False
    """Whether the setting is a list of methods, of which there may be none."""

    @property
    def path(self) -> str:
        """Path of the setting."""
        return f"{self.section}.{self.setting}"

    @property
    def methods(self) -> Methods[Any]:
        """The registry itself; imports its package."""
        return getattr(importlib.import_module(self.package), self.attribute)

    def names(self) -> list[str]:
        """Returns the values that the setting accepts: first those that name no method, then the
        engine's methods and sound plug-ins, sorted."""
        names = sorted([*self.methods.own, *self.methods.sound()])
        return [*self.others, *filter(self._selectable, names)]

    def selected(self, value: Any) -> tuple[str, ...]:
        """Returns the names that a value of the setting selects; none of a value that is no name,
        or no list of names."""
        if self.many:
            names: tuple[Any, ...] = tuple(value) if isinstance(value, (list, tuple)) else ()
        else:
            names = (value,)
        return tuple(name for name in names if isinstance(name, str))

    def figure(self, name: str, figure: str) -> str:
        """Returns the name under which a run reports a figure of a method: those of a loss are in
        its updates, all others are logged, and begin with the method's name."""
        return figure if self.kind == "losses" else f"{name}.{figure}"

    def error(self, name: str) -> str:
        """Returns why no run can select the method of that name; empty if it can."""
        if name in self.others:
            return ""
        try:
            if not self._selectable(name):
                return (
                    f"is a part, and used by settings of its own; choose one of "
                    f"{', '.join(self.names())}"
                )
        except KeyError:
            return f"choose one of {', '.join(self.names())}"
        except PluginError as error:
            return str(error)
        return ""

    def _selectable(self, name: str) -> bool:
        """Whether the setting may name a method: a part, such as of a reward, joins by its options
        alone."""
        return getattr(self.methods[name], "selectable", True)


REGISTRIES = (
    Registry("advantages", "credit", "advantage", "engine.credit", "ADVANTAGES"),
    Registry("losses", "loss", "policy", "engine.losses", "POLICY_LOSSES"),
    Registry("rewards", "credit", "score", "engine.credit.rewards", "REWARDS"),
    Registry("formats", "problems", "format", "engine.problems.formats", "FORMATS",
             others=("auto", "grove")),
    Registry("strategies", "search", "strategy", "engine.search.strategies", "STRATEGIES"),
    Registry("allocators", "search", "allocator", "engine.search.allocators", "ALLOCATORS"),
    Registry("samplers", "training", "sampler", "engine.curriculum", "SAMPLERS"),
    Registry("environments", "environment", "name", "engine.environments", "ENVIRONMENTS"),
    Registry("composers", "training", "compose", "engine.training.compose", "COMPOSERS"),
    Registry("gauges", "evaluation", "gauges", "engine.evaluation.gauges", "GAUGES", many=True),
)  # fmt: skip
"""All registries."""


READS = {
    "NEEDS": ("advantages", "losses", "composers", "gauges"),
    "MAKES": ("advantages", "composers"),
}
"""Kinds whose methods may have these lists of names (`engine.config.columns`)."""


def registry(kind: str) -> Registry:
    """Returns the registry of that kind."""
    return next(one for one in REGISTRIES if one.kind == kind)


def registry_at(path: str) -> Registry | None:
    """Returns the registry whose methods the setting at this path selects; None for other
    settings."""
    return next((one for one in REGISTRIES if one.path == path), None)


class Methods(dict[str, Method], Generic[Method]):
    """Methods by name: the engine's, and each plug-in from its first use on."""

    def __init__(
        self,
        kind: str,
        adapted: Callable[[Any], Method],
        *modules: ModuleType,
    ):
        """`modules` are the engine's methods, named as their last part. `adapted` makes a method
        from a module, and raises `ValueError` for one that is none."""
        self._adapted, self._kind = adapted, kind
        self._sources: dict[str, Any] = {one.__name__.rpartition(".")[2]: one for one in modules}
        self.own = tuple(self._sources)
        """Names of the engine's methods, in the order of the registry."""
        self._broken: dict[tuple[Any, ...], PluginError] = {}
        super().__init__({name: adapted(module) for name, module in self._sources.items()})

    def __missing__(self, name: str) -> Method:
        matching = [one for one in plugins(self._kind) if one.name == name]
        if not matching:
            raise KeyError(name)
        if broken := self._broken.get(_installation(matching[0])):
            raise broken
        try:
            source = self._source(matching)
        except PluginError as error:
            raise self._left_out(error) from error
        self._sources[name] = source
        self[name] = method = self._adapted(source)
        return method

    def every(self) -> dict[str, Method]:
        """Returns all methods: the engine's in their order, then sound plug-ins by name."""
        return {name: self[name] for name in [*self.own, *self.sound()]}

    def sound(self) -> list[str]:
        """Returns the names of the plug-ins that can be used; logs once why others cannot."""
        return [plugin.name for plugin, error in self.checked() if not error]

    def checked(self) -> Iterator[tuple[Plugin, str]]:
        """Yields each plug-in with the reason why it cannot be used, or an empty string."""
        for plugin in plugins(self._kind):
            if _installation(plugin) not in self._broken:
                if plugin.name in self.own:
                    self._left_out(self._taken(plugin, f"the engine's own {self._kind}"))
                else:
                    self._try(plugin)
            broken = self._broken.get(_installation(plugin))
            yield plugin, broken.reason if broken else ""

    def _try(self, plugin: Plugin) -> None:
        try:
            self[plugin.name]
        except PluginError as error:
            if error.plugin != plugin:  # of two packages with one name, neither can be used
                self._left_out(PluginError(plugin, error.reason))

    def options(self, name: str) -> type[Settings] | None:
        """Returns the class of a method's options; None if it has none, or is no sound method."""
        try:
            method = self[name]
        except (KeyError, PluginError):
            return None
        return getattr(self._sources.get(name, method), "Options", None)

    def source(self, name: str) -> Any:
        """Returns the module of a method; None for one that was registered without a module."""
        return self._sources.get(name)

    def _source(self, matching: list[Plugin]) -> Any:
        """Returns what the only plug-in of a name holds. Raises `PluginError`."""
        plugin = matching[0]
        if others := matching[1:]:
            raise self._taken(plugin, str(others[0]))
        if not NAME.fullmatch(plugin.name):
            raise PluginError(plugin, "write its name in lower-case letters, digits and _")
        if reason := _name_fault(plugin):
            raise PluginError(plugin, reason)
        source = plugin.load()
        try:
            self._adapted(source)
        except Exception as error:  # whatever its attributes raise
            raise PluginError(plugin, str(error)) from error
        if fault := options_fault(getattr(source, "Options", None)):
            raise PluginError(plugin, fault)
        if fault := _figures_fault(getattr(source, "FIGURES", {})):
            raise PluginError(plugin, fault)
        if fault := _unread_names(plugin.kind, source):
            raise PluginError(plugin, fault)
        return source

    def _left_out(self, error: PluginError) -> PluginError:
        _log.warning("%s; it is left out", error)
        self._broken[_installation(error.plugin)] = error
        return error

    def _taken(self, plugin: Plugin, by: str) -> PluginError:
        return PluginError(plugin, f"its name is taken by {by}; rename it, or uninstall a package")


def _installation(plugin: Plugin) -> tuple[Any, ...]:
    """Returns what identifies a plug-in among the packages on today's search path."""
    return (*sys.path, plugin)


def option_tables(section: str) -> dict[str, type[Settings]]:
    """Returns the options of all methods of a section's registries that have some, by name."""
    tables: dict[str, type[Settings]] = {}
    for one in REGISTRIES:
        if one.section == section:
            for name in [*one.methods.own, *one.methods.sound()]:
                if options := one.methods.options(name):
                    tables.setdefault(name, options)
    return tables


def options_named(section: str, name: str) -> type[Settings] | None:
    """Returns the options of the method of that name in a section; None if there are none."""
    for one in REGISTRIES:
        if one.section == section and (options := one.methods.options(name)):
            return options
    return None


def figures_of(config: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Returns {title, unit, section} of each figure of the methods that settings select, by name.
    The settings may be those of an external engine."""
    figures: dict[str, dict[str, str]] = {}
    for one in REGISTRIES:
        section = config.get(one.section)
        value = section.get(one.setting) if isinstance(section, Mapping) else None
        for name in one.selected(value):
            if not one.error(name):
                own = getattr(one.methods.source(name), "FIGURES", {})
                figures |= {one.figure(name, figure): asdict(how) for figure, how in own.items()}
    return figures


def formula_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns {form, of_agent} of the advantage that resolved settings select: how it follows from
    the rewards of a group, empty if in no way that a page can show, and whether a group is one
    agent's nodes of a tree."""
    one = registry("advantages")
    name = (config.get(one.section) or {}).get(one.setting, "")
    source = None if one.error(name) else one.methods.source(name)
    return {
        "form": str(getattr(source, "FORM", "")),
        "of_agent": bool(getattr(source, "OF_AGENT", False)),
    }


def _name_fault(plugin: Plugin) -> str:
    """Returns why options of that name could not be given; empty if they could."""
    section = importlib.import_module("engine.config.schema").RunConfig.model_fields[
        registry(plugin.kind).section
    ]
    if hasattr(section.annotation, plugin.name) or plugin.name in section.annotation.model_fields:
        return "its name is that of a setting of the same section; rename it"
    return ""


def _unread_names(kind: str, source: Any) -> str:
    """Returns why a method would wait in vain for what it needs, or make it for nobody; empty if it
    does not. Methods of kinds in `READS` say by themselves which names are wrong."""
    for attribute, kinds in READS.items():
        if kind not in kinds and (names := getattr(source, attribute, ())):
            listed = ", ".join(sorted(map(str, names))) if isinstance(names, Collection) else names
            return f"{attribute} has {listed}, but only {', '.join(kinds)} have {attribute}"
    return ""


def _figures_fault(figures: Any) -> str:
    if not isinstance(figures, Mapping) or not all(
        isinstance(name, str) and NAME.fullmatch(name) and isinstance(how, Figure)
        for name, how in figures.items()
    ):
        return "FIGURES is no mapping of names (a-z, 0-9, _) to engine.config.methods.Figure"
    return ""
