"""Layout of this installation: a source checkout, or packages that pip installed.

A checkout keeps its data in its own `var/` and is started by `make run`. An installed Grove keeps
its data in the user's data directory and is started by `grove up`: it never writes next to the
packages. Imports no Django.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2]
"""The directory that holds `engine`, `webapp` and `workers`."""
IS_CHECKOUT = (PACKAGES / "manage.py").is_file() and (PACKAGES / "pyproject.toml").is_file()
UP = "make run" if IS_CHECKOUT else "grove up"
"""The command that starts everything on this machine."""


def default_var(env: Mapping[str, str]) -> Path:
    """The data directory if GROVE_VAR is not set: `var/` of a checkout, else
    `$XDG_DATA_HOME/grove`, by default `~/.local/share/grove`.

    Raises:
        RuntimeError: an account without a home directory runs an installed Grove.
    """
    if IS_CHECKOUT:
        return PACKAGES / "var"
    data_home = Path(env.get("XDG_DATA_HOME", ""))  # a relative one is invalid, by its standard
    return (data_home if data_home.is_absolute() else Path.home() / ".local" / "share") / "grove"
