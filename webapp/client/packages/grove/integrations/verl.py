"""Backend `grove` of verl's trackers, as of verl 0.9.

    export VERL_USE_EXTERNAL_MODULES=grove.integrations.verl
    python -m verl.trainer.main_ppo trainer.logger='[console,grove]' trainer.project_name=Oaks ...

verl imports that module first, and its trainers then find the backend. `GROVE_PROJECT` is the
project if it is set. Generations of a validation are a table.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from verl.utils import tracking as trackers

from webapp.client import tracking

BACKEND = "grove"


class Tracking(trackers.Tracking):
    """verl's tracker with one more backend."""

    supported_backend = [*trackers.Tracking.supported_backend, BACKEND]

    def __init__(
        self, project_name: str, experiment_name: str,
        default_backend: str | list[str] = "console", config: Any = None,
    ):  # fmt: skip
        super().__init__(project_name, experiment_name, default_backend, config)
        named = [default_backend] if isinstance(default_backend, str) else default_backend
        if BACKEND in named:
            project = os.environ.get("GROVE_PROJECT") or project_name
            run = tracking.init(
                project=project, name=experiment_name, config=config, reinit="finish_previous"
            )
            self.logger[BACKEND] = _Backend(run)

    def finish(self, exit_code: int = 0) -> None:
        """Ends every backend, once."""
        is_over = getattr(self, "_finished", True)
        super().finish(exit_code)
        if not is_over and BACKEND in self.logger:
            self.logger[BACKEND].run.finish(exit_code)


class _Backend:
    def __init__(self, run: tracking.Run):
        self.run = run

    def log(self, data: dict[str, Any], step: int) -> None:
        self.run.log(data, step=step)


class ValidationGenerationsLogger(trackers.ValidationGenerationsLogger):
    """verl's logger of validation samples (input, output, score), with one more backend."""

    def log(self, loggers: Sequence[str], samples: Sequence[Sequence[Any]], step: int) -> None:
        super().log(loggers, samples, step)
        run = tracking.run_or_none()
        if BACKEND in loggers and run is not None:
            rows = [list(sample) for sample in samples]
            table = tracking.Table(columns=["input", "output", "score"], data=rows)
            run.log({"val/generations": table}, step=step)


trackers.Tracking = Tracking
trackers.ValidationGenerationsLogger = ValidationGenerationsLogger
