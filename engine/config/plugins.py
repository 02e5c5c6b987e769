"""Plug-ins: methods of other packages, found by the entry points of installed packages.

Entry points of the group `grove.KIND` are methods of the registry KIND (`engine.config.methods`):
the name of one is the method's, its value the module that holds it.

Invariant: names are read from metadata; no module of a package is imported until it is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, distributions
from typing import Any

PREFIX = "grove."
HEAVY = ("torch", "ray", "vllm", "transformers")
"""Packages that no module of a method may import when it is imported itself: the site loads it."""


class PluginError(ValueError):
    """Raised for a plug-in that cannot be used; names the entry point and its package."""

    def __init__(self, plugin: Plugin, reason: str):
        super().__init__(f"{plugin}: {reason}")
        self.plugin, self.reason = plugin, reason

    def __reduce__(self) -> tuple[type[PluginError], tuple[Plugin, str]]:
        return PluginError, (self.plugin, self.reason)  # it crosses from an actor's process


@dataclass(frozen=True)
class Plugin:
    """One entry point of an installed package."""

    kind: str
    """Its group without `grove.`, such as `advantages`."""
    name: str
    value: str
    """Dotted name of its module."""
    package: str
    version: str
    folder: str
    """Directory of the installed package."""

    def __str__(self) -> str:
        package = f"{self.package} {self.version}".strip()
        return f"{PREFIX}{self.kind} {self.name} = {self.value} of package {package}"

    def load(self) -> Any:
        """Imports the module, or returns what its entry point names in it.

        Raises:
            PluginError: it cannot be imported, or imports a package of `HEAVY`.
        """
        before = {name for name in HEAVY if name in sys.modules}
        try:
            loaded = EntryPoint(self.name, self.value, PREFIX + self.kind).load()
        except Exception as error:  # whatever the module raises when it is imported
            reason = f"cannot be imported ({type(error).__name__}: {error})"
            raise PluginError(self, reason) from error
        if heavy := [name for name in HEAVY if name in sys.modules and name not in before]:
            raise PluginError(
                self,
                f"imports {', '.join(heavy)} when it is imported, which the site never loads; "
                "import it inside of functions, and for annotations under TYPE_CHECKING",
            )
        return loaded


def plugins(kind: str | None = None) -> list[Plugin]:
    """Returns the entry points of one registry (of all if None), by kind, name and package."""
    return [one for one in _installed(tuple(sys.path)) if kind in (None, one.kind)]


@lru_cache(maxsize=4)
def _installed(path: tuple[str, ...]) -> tuple[Plugin, ...]:
    # Reading the metadata of all packages takes tens of milliseconds: once per search path. The
    # name of a package costs several times as much, and is read only where it is needed.
    installed: dict[str, list[Plugin]] = {}
    for package in distributions():
        if f"[{PREFIX}" in (package.read_text("entry_points.txt") or ""):
            # The first package of a name hides others later on the path.
            installed.setdefault(package.name, list(_of_package(package)))
    found = (plugin for package in installed.values() for plugin in package)
    return tuple(sorted(found, key=lambda one: (one.kind, one.name, one.package)))


def _of_package(package: Distribution) -> Iterator[Plugin]:
    for point in package.entry_points:
        if point.group.startswith(PREFIX):
            kind = point.group.removeprefix(PREFIX)
            folder = str(package.locate_file(""))
            yield Plugin(kind, point.name, point.value, package.name, package.version, folder)
