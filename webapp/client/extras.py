"""Optional packages of the command: checked before they are imported."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


class NotInstalled(Exception):
    """Raised if a package of an extra is missing; the message has the command that installs it."""


def needed(package: str, extra: str) -> ModuleType:
    """Returns the package. Raises `NotInstalled`."""
    if find_spec(package) is None:
        raise NotInstalled(f"not installed: {package}. Run: pip install 'grove-rl[{extra}]'")
    return import_module(package)
