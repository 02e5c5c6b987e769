"""Summary of a run, folded from its log: a line for terminals and a JSON result."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from engine.events.log import EventReader
from engine.events.vocabulary import (
    KINDS,
    CheckpointSaved,
    ErrorRaised,
    EvaluationResult,
    Payload,
    RunPlanned,
    RunResumed,
    RunStateChanged,
    RunWaiting,
    StepEnded,
)

_FOLDED = {
    RunStateChanged, RunResumed, RunWaiting, RunPlanned, StepEnded, EvaluationResult,
    CheckpointSaved, ErrorRaised,
}  # fmt: skip


class RunDigest:
    """Fold of a run's log; each `read` continues where the last one ended, so each event is folded
    once."""

    def __init__(self, run_dir: Path):
        self.run_dir = run_dir
        self.state = ""
        self.step = self.steps = 0
        self.minutes: float | None = None
        self.training_seconds = 0.0
        self.reward = self.solved = 0.0
        self.waiting = ""
        self.error = ""
        self.evaluations: dict[tuple[str, int], EvaluationResult] = {}
        self.models: dict[str, str] = {}
        self.resumed = 0
        self._reader = EventReader(run_dir)

    @classmethod
    def of(cls, run_dir: Path) -> Self:
        """Returns the digest of a whole log."""
        digest = cls(run_dir)
        digest.read()
        return digest

    def read(self) -> None:
        """Folds the events since the last call."""
        while batch := self._reader.read():
            for event in batch:
                if KINDS[event.kind] in _FOLDED:
                    self._fold(event.typed())

    def line(self) -> str:
        """Returns the progress of the run in one line."""
        if self.waiting:
            return f"waiting for {self.waiting}"
        goal = (
            f" of {self.steps}" if self.minutes is None else f", {self.minutes:g} minutes planned"
        )
        parts = [self.state or "starting", f"step {self.step}{goal}"]
        if self.step:
            parts.append(f"reward {self.reward:.3f}, trees solved {self.solved:.0%}")
            parts.append(f"{self.training_seconds:.0f} s of training")
        return " · ".join(parts)

    def result(self) -> dict[str, Any]:
        """Returns the state and results of the run as plain JSON."""
        return {
            "run_dir": str(self.run_dir),
            "state": self.state,
            "steps": self.step,
            "training_seconds": self.training_seconds,
            "resumed": self.resumed,
            "evaluations": [
                {
                    "split": result.split,
                    "step": result.step,
                    "problems": result.problems,
                    "pass1": result.agents,
                    "pass1_se": result.standard_errors,
                    "tree": result.tree,
                    "samples": result.samples,
                    "tree_nodes": result.tree_nodes,
                }
                for result in self.evaluations.values()
            ],
            "models": {name: str(self.run_dir / path) for name, path in self.models.items()},
            "error": self.error,
        }

    def _fold(self, payload: Payload) -> None:
        match payload:
            case RunStateChanged():
                self.state, self.waiting = payload.state.value, ""
            case RunPlanned():
                self.steps, self.minutes, self.error = payload.steps, payload.minutes, ""
            case RunResumed():
                self._void_after(payload.step)
            case RunWaiting():
                self.waiting = payload.name
            case StepEnded():
                self.step, self.training_seconds = payload.step, payload.training_seconds
                self.reward, self.solved = payload.reward, payload.solved
            case EvaluationResult():
                self.evaluations[payload.split, payload.step] = payload
            case CheckpointSaved() if payload.final:
                self.models = dict(payload.models)
            case ErrorRaised():
                self.error = payload.message

    def _void_after(self, step: int) -> None:
        self.resumed += 1
        self.step = min(self.step, step)
        self.evaluations = {key: r for key, r in self.evaluations.items() if r.step <= step}
