"""Tracking of any training program's run on a Grove server: `import grove as wandb`.

Everything is `webapp.client.tracking`; nothing here imports Django, torch or the engine.
"""

from typing import Any

from webapp.client import tracking
from webapp.client.tracking import *  # noqa: F403

__all__ = tracking.__all__


def __getattr__(name: str) -> Any:
    """`run`, `config` and `summary`, which change with `init` and `finish`."""
    return getattr(tracking, name)
