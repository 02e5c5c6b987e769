"""The training loop.

One step: grow a forest, credit its trees, let every agent learn from its own nodes, measure and
save when it is time. With `training.overlap` a step's learning goes on while the next step's trees
grow, and is waited for when those are whole; then the generators get the new weights. Invariants:
- The loop knows no method: credit and losses are chosen by name from the config.
- What is saved, or measured, is the state after a whole step, its learning included; a step that
  was cut off is done again, and so are trees that were under way (`training.extra_trees`). The log
  reaches the disk before the checkpoint that it leads to.
- The test split is measured once, at the end, for the starting and the final weights; what stands
  in the log of a resumed run is not measured again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.config import RunConfig
from engine.credit.assign import Credit, TreeRecord, assign_credit, credit_batch
from engine.credit.filters import usable
from engine.events import (
    CheckpointSaved,
    EventLog,
    LogLine,
    RunPlanned,
    RunResumed,
    RunWaiting,
    StepEnded,
    StepStarted,
    read_all,
)
from engine.policy.rows import TrainingRow
from engine.problems.source import ProblemSet
from engine.sharing import weight_groups
from engine.timeline import standing
from engine.training.buffers import AgentBuffer
from engine.training.carried import CarriedTrees
from engine.training.checkpoint import Checkpoint, Checkpoints
from engine.training.compatibility import RunRecord
from engine.training.evaluation import Evaluator
from engine.training.forest import Forest, GrowingTree, WrittenNode, training_score
from engine.training.progress import Progress
from engine.training.rollout import Rollout, Stopped, timed
from engine.training.system import SystemSampler
from engine.training.team import Team
from engine.training.telemetry import StepFigures, StepRecorder

VALIDATION, TEST = "validation", "test"


@dataclass(frozen=True)
class Learning:
    """An update of every agent that had a batch, under way."""

    recorder: StepRecorder
    calls: dict[str, Any]
    """By the owner of the weights."""
    trees: dict[str, list[int]]
    """Whose nodes are learned from, by the owner too."""


class Trainer:
    """Trains one team to the end of its plan, or until it is told to stop."""

    def __init__(
        self,
        config: RunConfig,
        run_dir: Path,
        log: EventLog,
        team: Team,
        problems: ProblemSet,
        should_stop: Callable[[], bool],
        system: SystemSampler,
        record: RunRecord,
        checkpoint: Checkpoint | None = None,
    ):
        """`record` is saved with every checkpoint; `checkpoint` is the one to go on from."""
        self.config = config
        self.run_dir = run_dir
        self.log = log
        self.team = team
        self.problems = problems
        self.should_stop = should_stop
        self.system = system
        self.record = record
        self.checkpoint = checkpoint
        groups = weight_groups([agent for agent in config.agents if agent.trainable])
        self.learners = {owner: [agent.name for agent in group] for owner, group in groups.items()}
        """The agents of every policy that learns, by the owner of its weights."""
        plan = config.training
        self.buffers = {
            name: AgentBuffer(plan.batch_nodes, plan.max_batch_nodes, plan.max_staleness)
            for name in self.learners
        }
        self.checkpoints = Checkpoints(run_dir, config.training.keep_checkpoints)
        self.progress = Progress()
        self.saved_step = -1
        self.validation: float | None = None
        """Mean validation Pass@1 of the agents with the current weights, if measured."""
        self._learning: Learning | None = None
        self._syncing: list[Any] = []
        self._carried = CarriedTrees(config, team, problems, should_stop)
        self._again: list[int] = []
        """Problems whose trees a resume cut off: they are begun again first."""
        self._measured: set[tuple[str, int]] = set()
        """Splits and steps of the evaluations that stand in the log of a resumed run."""
        self.evaluator = Evaluator(team, config, should_stop)

    def run(self) -> None:
        """Train, then measure the test split and save the final weights.

        Raises:
            Stopped: a stop was asked for; the last finished step is saved.
        """
        self._restore()
        options = self.config.training
        names = [agent.name for agent in self.config.agents]
        self.log.append(RunPlanned(options.steps, names, options.minutes))
        try:
            while not self._is_done():
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
        recorder = StepRecorder(self.log, step)
        phases: dict[str, float] = {}
        trees = self._grow_step(step, recorder, phases)
        self._finish_learning(phases)
        with timed(phases, "credit"):
            credits = self._credit(trees, recorder)
        if step == 1:
            # The starting weights, as late as they are there: the first node comes sooner.
            self._validate(phases)
        self._start_learning(recorder)
        if not options.overlap or self._rests_after(step):
            self._finish_learning(phases)
        training_seconds = time.monotonic() - started - phases.get("validate", 0.0)
        self._tell_of_lost_nodes()
        carried = [*self._carried.trees.values(), *self._again]
        self.progress.finish_step(step, self._begun, training_seconds, carried)
        self.validation = None
        if step % options.validate_every == 0:
            self._validate(phases)
        self._log_end(step, trees, credits, phases, time.monotonic() - started)
        if sample := self.system.due():
            self.log.append(sample)
        if step % options.checkpoint_every == 0 or self._is_best():
            self._save()

    def _grow_step(
        self, step: int, recorder: StepRecorder, phases: dict[str, float]
    ) -> list[GrowingTree]:
        """The trees of a step; those that would be left out are replaced while rounds are left."""
        self._begun = self._opened = self._refilled = 0
        trees: list[GrowingTree] = []
        missing = self.config.training.trees_per_step
        grow = self._gather if self.config.training.extra_trees else self._grow
        for refill in range(1 + self.config.credit.refill_rounds):
            self._refilled += missing if refill else 0
            trees += grow(missing, step, recorder, phases)
            kept = sum(usable(tree.scores(), self.config.credit) for tree in trees)
            missing = max(0, self.config.training.trees_per_step - kept)
            if missing == 0:
                break
        return trees

    def _grow(
        self, count: int, step: int, recorder: StepRecorder, phases: dict[str, float]
    ) -> list[GrowingTree]:
        """So many trees of the next problems."""
        config = self.config
        batch = self.problems.training_batch(self.progress.problems_seen + self._begun, count)
        names = tuple(agent.name for agent in config.agents)
        judge = training_score(config.credit.score)
        forest = Forest(batch, names, config.search, judge, [config.seed, step], self._begun)
        self._begun += count
        recorder.open_trees(forest.trees)
        rollout = Rollout(self.team, forest, recorder, self.should_stop)
        rollout.run()
        for name, seconds in rollout.seconds.items():
            phases[name] = phases.get(name, 0.0) + seconds
        return forest.trees

    def _gather(
        self, count: int, step: int, recorder: StepRecorder, phases: dict[str, float]
    ) -> list[GrowingTree]:
        """At least so many whole trees; as many as `extra_trees` more grow beside them."""
        missing = max(0, count + self.config.training.extra_trees - len(self._carried.trees))
        again, self._again = self._again[:missing], self._again[missing:]
        first = self.progress.problems_seen + self._begun
        new = range(first, first + missing - len(again))
        recorder.open_trees(self._carried.plant([*again, *new], step, self._opened))
        self._begun += len(new)
        self._opened += missing
        return self._carried.gather(count, recorder, phases)

    def _credit(self, trees: list[GrowingTree], recorder: StepRecorder) -> list[Credit]:
        config = self.config.credit
        limits = {agent.name: agent.sampling.max_new_tokens for agent in self.config.agents}
        records = [_record(tree) for tree in trees]
        credits = [
            assign_credit(record, config, [limits[agent] for agent in record.agents])
            for record in records
        ]
        credits = credit_batch(records, credits, config)
        for tree, credit in zip(trees, credits, strict=True):
            recorder.credited(tree, credit)
            if not credit.filtered:
                self._keep(tree, credit)
        return credits

    def _keep(self, tree: GrowingTree, credit: Credit) -> None:
        """Every policy's own nodes go to its buffer."""
        owners = {name: owner for owner, names in self.learners.items() for name in names}
        rows: dict[str, list[TrainingRow]] = {owner: [] for owner in self.learners}
        for node, advantage in zip(_closed(tree), credit.advantages_N, strict=True):
            if node.agent in owners and node.score is not None:
                row = _training_row(node.answer.generation, float(advantage), tree.id, node.node)
                rows[owners[node.agent]].append(row)
        for name, mine in rows.items():
            self.buffers[name].add_tree(mine)

    def _start_learning(self, recorder: StepRecorder) -> None:
        batches = {name: rows for name, buffer in self.buffers.items() if (rows := buffer.take())}
        share = self.progress.share(self.config.training)
        calls = {
            name: self.team.agents[name].learn.remote(name, rows, share)
            for name, rows in batches.items()
        }
        trees = {name: sorted({row.tree for row in rows}) for name, rows in batches.items()}
        self._learning = Learning(recorder, calls, trees)

    def _finish_learning(self, phases: dict[str, float]) -> None:
        """Wait for the learning that is under way, and let the generators have its weights."""
        if self._learning is None:
            return
        recorder, calls = self._learning.recorder, self._learning.calls
        with timed(phases, "learn"):
            updates = self.team.get(list(calls.values()), "agents to learn")
        for name, stats in zip(calls, updates, strict=True):
            stale = stats.stale_nodes + self.buffers[name].learned(stats.version)
            trees = self._learning.trees[name]
            recorder.updated(name, replace(stats, stale_nodes=stale), self.learners[name], trees)
        self._learning = None
        with timed(phases, "sync"):
            # Generators take weights before whatever is asked of them later: no wait for these.
            self.team.get(self._syncing, "generators to take the last weights")
            self._syncing = self.team.sync(calls)
            self.team.end_step(generators=not self._carried.trees)

    def _rests_after(self, step: int) -> bool:
        """Whether something follows this step that the finished weights are needed for."""
        options = self.config.training
        return any(
            step % every == 0 for every in (options.validate_every, options.checkpoint_every)
        )

    def _tell_of_lost_nodes(self) -> None:
        for line in self.team.verifier.lost:
            self.log.append(LogLine("warning", line))
        self.team.verifier.lost.clear()

    def _validate(self, phases: dict[str, float]) -> None:
        if not self.problems.validation:
            return
        with timed(phases, "validate"):
            result = self.evaluator.run(self.progress.step, VALIDATION, self.problems.validation)
        self.validation = sum(result.agents.values()) / len(result.agents)
        self.log.append(result)

    def _measure_test_split(self) -> None:
        if not self.problems.test:
            return
        for step, starting in ((0, True), (self.progress.step, False)):
            if (TEST, step) in self._measured:
                continue
            self.log.append(
                RunWaiting(f"test split, {'starting' if starting else 'final'} weights", 3600)
            )
            result = self.evaluator.run(
                step, TEST, self.problems.test, starting_weights=starting, search=True
            )
            self.log.append(result)
        self.log.append(RunWaiting(""))

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
            StepEnded(
                step=step,
                seconds=seconds,
                phases=phases,
                nodes=figures.total,
                reward=figures.reward(),
                solved=figures.solved / max(1, figures.trees),
                node_share=figures.node_share(),
                reward_by_agent=figures.reward_by_agent(),
                filtered_trees=figures.filtered,
                dropped_nodes=figures.dropped,
                tokens=figures.tokens,
                training_seconds=self.progress.training_seconds,
                refilled_trees=self._refilled,
                carried_trees=len(self.progress.carried),
            )
        )
        if figures.near_limits and self.config.compute.deterministic:
            message = (
                f"step {step}: {figures.near_limits} programs ran near a time limit or into it; "
                "under other load their verdicts may be others (sandbox.cpu_seconds, wall_seconds)"
            )
            self.log.append(LogLine("warning", message))

    def _is_best(self) -> bool:
        if self.validation is None:
            return False
        best = self.checkpoints.best()
        return best is None or self.validation >= best.validation

    def _save(self) -> None:
        self._finish_learning({})
        if self.saved_step == self.progress.step:
            return
        if self._carried.trees:
            self.team.end_step()
        state = {
            "progress": self.progress.state(),
            "buffers": {name: buffer.state() for name, buffer in self.buffers.items()},
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
        self._finish_learning({})
        folder = self.run_dir / "models"
        futures = [self.team.agents[n].save_model.remote(n, folder / n) for n in self.learners]
        self.team.get(futures, "agents to save")
        models = {name: f"models/{name}" for name in self.learners}
        self.log.append(CheckpointSaved(self.progress.step, "models", final=True, models=models))

    def _restore(self) -> None:
        if self.checkpoint is None:
            if self.log.continued:
                self.log.append(RunResumed(0))
            return
        state = self.checkpoint.state
        differences = self.team.restore(self.checkpoint.path)
        self.progress = Progress.of(state["progress"])
        for name, rows in state["buffers"].items():
            self.buffers[name].load_state(rows)
        self._again = list(self.progress.carried)
        self._syncing = self.team.sync(self.learners)
        self.saved_step, self.validation = self.progress.step, self.checkpoint.validation
        self.log.append(RunResumed(self.progress.step))
        if self.config.compute.deterministic:
            for difference in differences:
                message = f"the last bits may change from here on: {difference}"
                self.log.append(LogLine("warning", message))
        self._read_log(self.checkpoint)

    def _read_log(self, checkpoint: Checkpoint) -> None:
        """Note what need not be measured again, and tell what a kill left untold."""
        kinds = ("run.resumed", "eval.result", "checkpoint.saved")
        told = standing(event for event in read_all(self.run_dir) if event.kind in kinds)
        self._measured = {
            (e.payload["split"], e.payload["step"]) for e in told if e.kind == "eval.result"
        }
        saved = {e.payload["path"] for e in told if e.kind == "checkpoint.saved"}
        if str(checkpoint.path.relative_to(self.run_dir)) not in saved:
            self._log_saved(checkpoint.path)


def _closed(tree: GrowingTree) -> list[WrittenNode]:
    return [tree.written[node] for node in sorted(tree.written)]


def _record(tree: GrowingTree) -> TreeRecord:
    nodes = _closed(tree)
    return TreeRecord(
        node_ids=[node.node for node in nodes],
        parents=[node.parent for node in nodes],
        agents=[node.agent for node in nodes],
        scores=[node.score for node in nodes],
        lengths=[len(node.answer.generation.output_ids) for node in nodes],
    )


def _training_row(generation, advantage: float, tree: int, node: int) -> TrainingRow:
    return TrainingRow(
        list(generation.prompt_ids),
        list(generation.output_ids),
        list(generation.logprobs),
        advantage,
        generation.policy_version,
        generation.temperature,
        tree,
        node,
    )
