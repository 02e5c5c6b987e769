"""The training loop.

One step: grow a forest, credit its trees, update every agent from its own nodes, evaluate and save
when due. With `training.overlap` a step's update runs while the next step's trees grow. As soon as
the update has ended the generators receive the new weights, and begin the following step with them
alongside the rest of the current one, so that neither their batch nor a core runs empty; the loop
waits for the update when the trees are complete. With `training.steps_ahead` = 2 they begin it
earlier, with the weights of before (`engine.rollout.admission`). Invariants:
- What is saved, or evaluated, is the state after a whole step, its update included; an interrupted
  step is repeated, and so are trees that were in flight (`training.extra_trees`). The log reaches
  the disk before the checkpoint that it leads to.
- The test split is evaluated once, at the end, for the starting and the final weights; results in
  the log of a resumed run are not computed again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from engine.config.schema import RunConfig
from engine.credit.assign import Credit
from engine.evaluation.gauges.fold import needs_of
from engine.evaluation.gauges.gauge import TAGS
from engine.events.log import EventLog, read_all
from engine.events.timeline import measured_and_saved
from engine.events.vocabulary import (
    CheckpointSaved,
    LogLine,
    RunPlanned,
    RunResumed,
    StepStarted,
)
from engine.problems.source import ProblemSet
from engine.rollout.forest import GrowingTree
from engine.rollout.memories import memories_of
from engine.rollout.step_rollout import StepRollout
from engine.rollout.types import Stopped
from engine.run.checkpoint import Checkpoint, Checkpoints
from engine.run.spans import step_span
from engine.run.timing import timed
from engine.training.compatibility import RunRecord
from engine.training.evaluation import TEST, VALIDATION, Evaluator
from engine.training.progress import Progress
from engine.training.team import Team
from engine.training.telemetry import StepFigures, StepRecorder, composed
from engine.training.update_coordinator import UpdateCoordinator, composer_memory


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
    ):
        """`record` is saved with every checkpoint; `checkpoint` is the one to resume from."""
        self.config = config
        self.run_dir = run_dir
        self.log = log
        self.team = team
        self.problems = problems
        self.should_stop = should_stop
        self.record = record
        self.checkpoint = checkpoint
        self.checkpoints = Checkpoints(run_dir, config.training.keep_checkpoints)
        self.progress = Progress()
        self.memories = memories_of(config, len(problems.train), composer_memory(config))
        self.learning = UpdateCoordinator(config, team, self.memories, problems.train)
        self.trees = StepRollout(config, team, problems, should_stop, self.memories)
        self.saved_step = -1
        self.first_step = 1
        self.validation: float | None = None
        """Mean validation Pass@1 of the agents with the current weights, if measured."""
        self._measured: set[tuple[str, int]] = set()
        """Split and step of each evaluation in the log of a resumed run."""
        self._with_tags = TAGS in needs_of(config.evaluation)
        self.evaluator = Evaluator(team, config, should_stop, log.append)

    def run(self) -> None:
        """Trains, then evaluates on the test split and saves the final weights.

        Raises:
            Stopped: a stop was requested; the last finished step is saved.
        """
        self._restore()
        options = self.config.training
        names = [agent.name for agent in self.config.agents]
        self.log.append(RunPlanned(options.steps, names, options.minutes))
        try:
            while not self._is_done():
                with step_span(self.progress.step + 1):
                    self._step(self.progress.step + 1)
            self._save()
            self._measure_test_split()
        except Stopped:
            self._save()
            raise
        self._save_final()

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
        recorder = StepRecorder(self.log, step, with_tags=self._with_tags)
        phases: dict[str, float] = {}
        self.team.verifier.renew()
        trees = self._grow(step, recorder, phases)
        with timed(phases, "credit"):
            credits = self.learning.credit(trees, recorder)
            self.memories.observe(step, self.learning.trees)
        if step == self.first_step:
            # Starting weights: validated as late as possible, so that the first node comes sooner.
            self._validate(phases)
        self.learning.start(recorder, self.progress.share(options))
        if not options.overlap or self._needs_weights_after(step):
            self._finish_update(phases)
        training_seconds = time.monotonic() - started - phases.get("validate", 0.0)
        self._log_lost_nodes()
        self.progress.finish_step(step, self.trees.begun, training_seconds, self.trees.carried)
        self.validation = None
        if step % options.validate_every == 0:
            self._validate(phases)
        self._log_end(step, trees, credits, phases, time.monotonic() - started)
        if step % options.checkpoint_every == 0 or self._is_best():
            self._save()

    def _grow(
        self, step: int, recorder: StepRecorder, phases: dict[str, float]
    ) -> list[GrowingTree]:
        """Returns the trees of a step. With `training.overlap`, the update of the previous one runs
        alongside and is finished when this returns."""
        seen = self.progress.problems_seen
        self.trees.begin(step, seen, recorder, phases, self.learning.calls)
        if self.trees.admission.may_begin(step + 1, updates=step - 2):
            self.trees.start()
            self._begin_after(step)
        while (trees := self.trees.grow()) is None:
            self._take_update(phases, step)
        self._finish_update(phases, step)
        return trees

    def _finish_update(self, phases: dict[str, float], step: int | None = None) -> None:
        """Waits for the update in flight, if there is one, and takes it."""
        self.learning.wait(phases, self.trees.growth)
        self._take_update(phases, step)

    def _take_update(self, phases: dict[str, float], step: int | None) -> None:
        """Sends the weights of an ended update to the generators, and records it. With a `step`,
        begins the next one with these weights first: the generators wait for it."""
        update = self.learning.send(phases)
        if step is not None:
            self._begin_after(step)
        if update:
            self.learning.record(update)

    def _begin_after(self, step: int) -> None:
        """Begins the next step if the weights that generators now have may write it."""
        options = self.config.training
        admitted = self.trees.admission.may_begin(step + 1, updates=step - 1)
        if admitted and step < options.steps and not self._needs_weights_after(step):
            self.trees.begin_ahead(step + 1, self.progress.problems_seen + self.trees.begun)

    def _needs_weights_after(self, step: int) -> bool:
        """Whether this step is followed by a validation or checkpoint, which need final weights."""
        options = self.config.training
        return any(
            step % every == 0 for every in (options.validate_every, options.checkpoint_every)
        )

    def _log_lost_nodes(self) -> None:
        for line in self.team.verifier.lost:
            self.log.append(LogLine("warning", line))
        self.team.verifier.lost.clear()

    def _validate(self, phases: dict[str, float]) -> None:
        if not self.problems.validation:
            return
        with timed(phases, "validate"):
            results = self.evaluator.run(self.progress.step, VALIDATION, self.problems.validation)
        self.validation = sum(results[0].agents.values()) / len(results[0].agents)
        for payload in results:
            self.log.append(payload)

    def _measure_test_split(self) -> None:
        if not self.problems.test:
            return
        for step, starting in ((0, True), (self.progress.step, False)):
            if (TEST, step) in self._measured:
                continue
            results = self.evaluator.run(
                step, TEST, self.problems.test, starting_weights=starting, search=True
            )
            for payload in results:
                self.log.append(payload)

    def _log_end(
        self,
        step: int,
        trees: list[GrowingTree],
        credits: list[Credit],
        phases: dict[str, float],
        seconds: float,
    ) -> None:
        figures = StepFigures.of(trees, credits, list(self.team.agents))
        self.log.append(
            figures.ended(
                step=step,
                seconds=seconds,
                phases=phases,
                training_seconds=self.progress.training_seconds,
                refilled_trees=self.trees.refilled,
                carried_trees=len(self.progress.carried),
                **composed(self.learning.compositions.values(), self.learning.ungraded),
            )
        )
        if figures.near_limits and self.config.compute.deterministic:
            self.log.append(LogLine("warning", figures.near_limits_warning(step)))

    def _is_best(self) -> bool:
        if self.validation is None:
            return False
        best = self.checkpoints.best()
        return best is None or self.validation >= best.validation

    def _save(self) -> None:
        self.trees.discard_ahead()
        self._finish_update({})
        if self.saved_step == self.progress.step:
            return
        state = {
            "progress": self.progress.state(),
            "buffers": {name: buffer.state() for name, buffer in self.learning.buffers.items()},
            "memory": self.memories.state(),
            "run": self.record.state(),
        }
        self.log.sync()
        path = self.checkpoints.save(self.progress.step, state, self.team.save, self.validation)
        self.saved_step = self.progress.step
        self._log_saved(path)

    def _log_saved(self, path: Path) -> None:
        best = self.checkpoints.best()
        self.log.append(
            CheckpointSaved(
                self.progress.step,
                str(path.relative_to(self.run_dir)),
                validation=self.validation,
                best=best is not None and best.step == self.progress.step,
            )
        )

    def _save_final(self) -> None:
        self._finish_update({})
        folder = self.run_dir / "models"
        names = list(self.learning.learners)
        futures = [self.team.agents[n].save_model.remote(n, folder / n) for n in names]
        self.team.get(futures, "agents to save")
        models = {name: f"models/{name}" for name in names}
        self.log.append(CheckpointSaved(self.progress.step, "models", final=True, models=models))

    def _restore(self) -> None:
        if self.checkpoint is None:
            if self.log.continued:
                self.log.append(RunResumed(0))
            return
        if self.checkpoint.is_origin:
            self._begin_at(self.checkpoint)
            return
        state = self.checkpoint.state
        differences = self.team.restore(self.checkpoint.path)
        self.progress = Progress.of(state["progress"])
        for name, rows in state["buffers"].items():
            self.learning.buffers[name].load_state(rows)
        self.memories.restore(state.get("memory", {}))  # added after 0.2
        self.trees.interrupted = list(self.progress.carried)
        self.learning.give_weights(list(self.learning.learners))
        self.saved_step, self.validation = self.progress.step, self.checkpoint.validation
        self.log.append(RunResumed(self.progress.step))
        if self.config.compute.deterministic:
            for difference in differences:
                message = f"the last bits may change from here on: {difference}"
                self.log.append(LogLine("warning", message))
        self._read_log(self.checkpoint)

    def _begin_at(self, origin: Checkpoint) -> None:
        """Takes weights and optimizer of another run's checkpoint, its position in the problems
        if these are the same, and what its methods pass on; all else begins here."""
        self.team.restore(origin.path, as_fork=True)
        before = Progress.of(origin.state["progress"])
        same = origin.state["run"]["problems"] == self.record.problems
        self.progress = Progress(before.step, before.problems_seen if same else 0)
        self.memories.fork(origin.state.get("memory", {}), same)
        self.first_step = before.step + 1
        self.learning.give_weights(list(self.learning.learners))
        if self.log.continued:
            self.log.append(RunResumed(before.step))

    def _read_log(self, checkpoint: Checkpoint) -> None:
        """Reads which evaluations are done, and emits the checkpoint event that a kill omitted."""
        self._measured, saved = measured_and_saved(read_all(self.run_dir))
        if str(checkpoint.path.relative_to(self.run_dir)) not in saved:
            self._log_saved(checkpoint.path)
