"""Stand-in for W&B, for libraries that import it themselves (transformers, TRL, Lightning).

    import grove as wandb
    from grove.integrations.wandb import install

    install()  # before the library is imported
    from trl import GRPOConfig, GRPOTrainer

`import wandb` is `grove` from then on in this process, whether or not W&B is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, DistributionFinder
from os import PathLike
from types import ModuleType
from typing import Any

import grove

VERSION = "0.31.0"
"""Version of W&B whose calls `grove` takes."""


_ANY = DistributionFinder.Context()


class Unusable(RuntimeError):
    """Raised by `install` if W&B itself is imported already."""


class ConfigError(Exception):
    """W&B's error for a setting that is changed, which Grove allows."""


class RunDisabled:
    """W&B's run of mode disabled; of Grove it is a `Run`."""


class _StandIn(Distribution):
    """W&B as installed: libraries look up its version before they import it."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: wandb\nVersion: {VERSION}\n"

    def locate_file(self, path: str | PathLike[str]) -> Any:
        raise FileNotFoundError(path)


class _Finder(DistributionFinder):
    """Finds the stand-in by its name, and no module."""

    def find_spec(self, *_: Any, **__: Any) -> None:
        return None

    def find_distributions(self, context: DistributionFinder.Context = _ANY) -> Iterable[_StandIn]:
        return [_StandIn()] if context.name == "wandb" else []


def install() -> None:
    """Makes `import wandb` mean `grove`; a repeated call does nothing.

    Raises:
        Unusable: W&B was imported before.
    """
    present = sys.modules.get("wandb")
    if present is grove:
        return
    if present is not None:
        raise Unusable("wandb is imported already: call install() before what imports it")
    modules: dict[str, dict[str, Any]] = {
        "wandb.sdk": {},
        "wandb.sdk.lib": {"RunDisabled": RunDisabled},
        "wandb.sdk.lib.config_util": {"ConfigError": ConfigError},
        "wandb.sdk.wandb_run": {"Run": grove.Run},
        "wandb.wandb_run": {"Run": grove.Run},
        "wandb.errors": {"Error": grove.Error, "CommError": grove.Error, "UsageError": grove.Error},
    }
    sys.modules["wandb"] = grove
    for name, members in modules.items():
        made = sys.modules[name] = ModuleType(name, "Part of W&B's package, by Grove.")
        vars(made).update(members)
        parent, _, own = name.rpartition(".")
        if parent != "wandb":
            setattr(sys.modules[parent], own, made)
    sys.modules["wandb.plot"] = grove.plot
    sys.meta_path.insert(0, _Finder())
