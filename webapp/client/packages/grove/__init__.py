"""Tracking of any training program's run on a Grove server: `import grove as wandb`.

Everything is `webapp.client.tracking`; nothing here imports Django, torch or the engine.
"""

from importlib import import_module
from typing import Any

from webapp.client import tracking
from webapp.client.tracking import *  # noqa: F403

__all__ = tracking.__all__
_OF_WANDB = ("apis", "data_types", "errors", "sdk", "wandb_run")


def __getattr__(name: str) -> Any:
    """`run`, `config` and `summary`, which change with `init` and `finish`, and parts of W&B's
    package that programs name: `errors`, `data_types`, `sdk`."""
    if name == "__version__":
        return tracking.WANDB_VERSION
    if name in _OF_WANDB:
        return import_module("grove.integrations.wandb").submodules()[f"wandb.{name}"]
    return getattr(tracking, name)
