"""Callback of transformers' `Trainer`, and of every trainer built on it.

    from grove.integrations.transformers import GroveCallback

    trainer = Trainer(..., callbacks=[GroveCallback(project="Oaks")])

Only the main process logs. Names are those of W&B's callback: train/loss, eval/loss.
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from webapp.client import tracking


class GroveCallback(TrainerCallback):
    """Logs to the current run, or to one that it starts with the arguments of `grove.init`.

    The run stays open after the training, for evaluations; it ends with the program, or by
    `grove.finish`. Stop on the run's page ends the training after the current step.
    """

    def __init__(self, **init: Any):
        self._init = init
        self._run: tracking.Run | None = None

    @property
    def run(self) -> tracking.Run | None:
        """The run; None before the training, and in processes that do not log."""
        return self._run

    def on_train_begin(
        self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
    ) -> None:
        run = self._ready(args, state)
        if run is None:
            return
        settings = args.to_dict()
        config = getattr(model, "config", None)
        if hasattr(config, "to_dict"):
            settings = {**config.to_dict(), **settings}
        run.config.update(settings)
        if hasattr(model, "num_parameters"):
            run.config.update({"model/num_parameters": model.num_parameters()})
        run.plan(state.max_steps)

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any
    ) -> None:
        if logs and (run := self._ready(args, state)):
            run.log({_name(name): value for name, value in logs.items()}, step=state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        if self._run and self._run.stop_requested:
            control.should_training_stop = True
        return control

    def _ready(self, args: Any, state: Any) -> tracking.Run | None:
        """Returns the run that is logged to, which is started if there is none."""
        if not state.is_world_process_zero:
            return None
        if self._run is None or self._run.is_over:
            name = {"name": args.run_name} if getattr(args, "run_name", None) else {}
            self._run = tracking.run_or_none() or tracking.init(**{**name, **self._init})
        return self._run


def _name(name: str) -> str:
    for prefix in ("eval_", "test_"):
        if name.startswith(prefix):
            return f"{prefix[:-1]}/{name[len(prefix) :]}"
    return f"train/{name}"
