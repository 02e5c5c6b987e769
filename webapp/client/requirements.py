"""Requirements of this distribution's extras that the environment does not meet.

They are read from the installed metadata, so none of the required packages is imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

DISTRIBUTION = "grove-rl"


@dataclass(frozen=True, slots=True)
class Unmet:
    """A requirement that is not met; `installed` is None if the package is missing."""

    requirement: str
    installed: str | None

    def __str__(self) -> str:
        state = f"{self.installed} is installed" if self.installed else "not installed"
        return f"{self.requirement} ({state})"


def unmet(extra: str) -> list[Unmet]:
    """Returns what `pip install grove-rl[EXTRA]` would install or change, without the requirements
    of requirements; "" is the base. Empty where Grove runs without being installed."""
    try:
        declared = [Requirement(line) for line in requires(DISTRIBUTION) or ()]
    except PackageNotFoundError:
        return []
    return _unmet(declared, extra)


def _unmet(declared: list[Requirement], extra: str) -> list[Unmet]:
    missing: list[Unmet] = []
    for requirement in declared:
        if not _belongs_to(requirement, extra):
            continue
        if requirement.name == DISTRIBUTION:  # an extra that includes others
            for included in sorted(requirement.extras):
                missing += _unmet(declared, included)
            continue
        installed = _installed(requirement.name)
        if installed is None or not requirement.specifier.contains(installed, prereleases=True):
            missing.append(Unmet(f"{requirement.name}{requirement.specifier}", installed))
    return missing


def _belongs_to(requirement: Requirement, extra: str) -> bool:
    marker = requirement.marker
    in_base = marker is None or marker.evaluate({"extra": ""})
    if not extra:
        return in_base
    return not in_base and marker is not None and marker.evaluate({"extra": extra})


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
