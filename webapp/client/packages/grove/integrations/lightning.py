"""Logger of PyTorch Lightning.

    from grove.integrations.lightning import GroveLogger

    trainer = Trainer(..., logger=GroveLogger(project="Oaks"))

Of `lightning` and `pytorch_lightning`, which have the same classes under two names, it is made for
the one that the program has imported. Only the process of rank 0 logs.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from webapp.client import tracking


def _library() -> str:
    """Returns the name under which the program has Lightning."""
    imported = [name for name in ("lightning.pytorch", "pytorch_lightning") if name in sys.modules]
    if imported:
        return imported[0]
    return "lightning.pytorch" if find_spec("lightning") else "pytorch_lightning"


_loggers: Any = import_module(f"{_library()}.loggers.logger")
_ranks: Any = import_module(f"{_library()}.utilities")


class GroveLogger(_loggers.Logger):
    """Logs to the current run, or to one that it starts with the arguments of `grove.init`.

    The run stays open after `fit`, for `test`; it ends with the program, or by `grove.finish`.
    """

    def __init__(self, **init: Any):
        super().__init__()
        self._init = init
        self._run: tracking.Run | None = None

    @property
    @_loggers.rank_zero_experiment
    def experiment(self) -> tracking.Run:
        """The run, which is started if there is none."""
        if self._run is None or self._run.is_over:
            self._run = tracking.run_or_none() or tracking.init(**self._init)
        return self._run

    @property
    def name(self) -> str | None:
        return self._run.project if self._run else self._init.get("project")

    @property
    def version(self) -> str | None:
        return self._run.id if self._run else self._init.get("id")

    @_ranks.rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        self.experiment.log(metrics, step=step)

    @_ranks.rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *_: Any, **more: Any) -> None:
        self.experiment.config.update(params)
