"""The training loop.

One step: grow a forest, credit its trees, update every agent from its own nodes, evaluate and save
when due. What may run at the same time is said in `overlap.py`, what is evaluated in
`evaluations.py`, what is saved and restored in `saves.py`.

Invariant: what is saved, or evaluated, is the state after a whole step, its update included; an
interrupted step is repeated, and so are trees that were in flight (`training.extra_trees`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from engine.config.schema import RunConfig
from engine.events.log import EventLog
from engine.events.vocabulary import LogLine, RunPlanned, RunResumed, StepStarted
from engine.problems.source import ProblemSet
from engine.rollout.step_rollout import StepRollout
from engine.rollout.types import Stopped
from engine.run.checkpoint import Checkpoint
from engine.run.spans import step_span
from engine.run.timing import timed
from engine.training.compatibility import RunRecord
from engine.training.evaluation import Evaluator
from engine.training.evaluations import Evaluations
from engine.training.memories import training_memories
from engine.training.overlap import Overlap
from engine.training.progress import Progress
from engine.training.saves import Saves
from engine.training.team import Team
from engine.training.telemetry import StepRecorder
from engine.training.update_coordinator import UpdateCoordinator


class Trainer:
    """Trains one team to the end of its plan, or until a stop is requested."""

    def __init__(
        self,
        config: RunConfig,
        run_dir: Path,
        log: EventLog,
        team: Team,
        problems: ProblemSet,
        should_stop: Callable[[], bool],
        record: RunRecord,
        checkpoint: Checkpoint | None = None,
        coordinator: type[UpdateCoordinator] = UpdateCoordinator,
        rollout: type[StepRollout] = StepRollout,
    ):
        """`record` is saved with every checkpoint; `checkpoint` is the one to resume from."""
        self.config = config
        self.log = log
        self.team = team
        self.should_stop = should_stop
        self.checkpoint = checkpoint
        self.progress = Progress()
        self.first_step = 1
        self.memories = training_memories(config, len(problems.train))
        self.learning = coordinator(config, team, self.memories, problems.train)
        self.trees = rollout(config, team, problems, should_stop, self.memories)
        self.overlap = Overlap(config.training, self.trees, self.learning)
        evaluator = Evaluator(team, config, should_stop, log.append)
        self.evaluations = Evaluations(config.training, evaluator, problems, log)
        self.saves = Saves(config, run_dir, log, team, self.learning, self.memories, record)

    def run(self) -> None:
        """Trains, then evaluates on the test split and saves the final weights.

        Raises:
            Stopped: a stop was requested; the last finished step is saved.
        """
        self._begin()
        options = self.config.training
        names = [agent.name for agent in self.config.agents]
        self.log.append(RunPlanned(options.steps, names, options.minutes))
        try:
            while not self._is_done():
                with step_span(self.progress.step + 1):
                    self._step(self.progress.step + 1)
            self._save()
            self.evaluations.test(self.progress.step, self.saves.measured)
        except Stopped:
            self._save()
            raise
        self.saves.save_models(self.progress.step)

    def _begin(self) -> None:
        """Goes on from the checkpoint, if there is one."""
        checkpoint = self.checkpoint
        if checkpoint is None:
            if self.log.continued:
                self.log.append(RunResumed(0))
        elif checkpoint.is_origin:
            self.progress = self.saves.fork(checkpoint)
            self.first_step = self.progress.step + 1
        else:
            self.progress = self.saves.resume(checkpoint)
            self.trees.interrupted = list(self.progress.carried)
            self.evaluations.validation = checkpoint.validation

    def _is_done(self) -> bool:
        if self.should_stop():
            raise Stopped
        minutes = self.config.training.minutes
        spent = minutes is not None and self.progress.training_seconds >= 60 * minutes
        return spent or self.progress.step >= self.config.training.steps

    def _step(self, step: int) -> None:
        started = time.monotonic()
        options = self.config.training
        self.log.append(StepStarted(step, options.trees_per_step))
        recorder = StepRecorder.of(self.config, self.log, step)
        phases: dict[str, float] = {}
        self.team.verifier.renew()
        trees = self.overlap.grow(step, self.progress.problems_seen, recorder, phases)
        with timed(phases, "credit"):
            credits = self.learning.credit(trees, recorder)
            self.memories.observe(step, self.learning.trees)
        if step == self.first_step:
            # Starting weights: validated as late as possible, so that the first node comes sooner.
            self.evaluations.validate(self.progress.step, phases)
        self.learning.start(recorder, self.progress.share(options))
        self.overlap.after(step, phases)
        training_seconds = time.monotonic() - started - phases.get("validate", 0.0)
        self._log_lost_nodes()
        self.progress.finish_step(step, self.trees.begun, training_seconds, self.trees.carried)
        self.evaluations.after(step, phases)
        recorder.step_ended(
            trees,
            credits,
            seconds=time.monotonic() - started,
            phases=phases,
            training_seconds=self.progress.training_seconds,
            refilled_trees=self.trees.refilled,
            carried_trees=len(self.progress.carried),
            **self.learning.composed(),
        )
        is_best = self.saves.is_best(self.evaluations.validation)
        if step % options.checkpoint_every == 0 or is_best:
            self._save()

    def _log_lost_nodes(self) -> None:
        for line in self.team.verifier.lost:
            self.log.append(LogLine("warning", line))
        self.team.verifier.lost.clear()

    def _save(self) -> None:
        self.overlap.end()
        self.saves.save(self.progress, self.evaluations.validation)
