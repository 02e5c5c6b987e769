"""What a training saves, and how it goes on from it: as the same run, or as a fork.

Invariant: what is saved is the state after a whole step, its update included. The log reaches the
disk before the checkpoint that it leads to.
"""

from __future__ import annotations

from pathlib import Path

from engine.config.schema import RunConfig
from engine.events.log import EventLog, read_all
from engine.events.timeline import measured_and_saved
from engine.events.vocabulary import CheckpointSaved, LogLine, RunResumed
from engine.memory.memories import Memories
from engine.run.checkpoint import Checkpoint, Checkpoints
from engine.training.compatibility import RunRecord
from engine.training.progress import Progress
from engine.training.team import Team
from engine.training.update_coordinator import UpdateCoordinator


class Saves:
    """Saves and restores the parts of one training; each knows its own state."""

    def __init__(
        self,
        config: RunConfig,
        run_dir: Path,
        log: EventLog,
        team: Team,
        learning: UpdateCoordinator,
        memories: Memories,
        record: RunRecord,
    ):
        """`record` is saved with every checkpoint."""
        self._deterministic = config.compute.deterministic
        self._run_dir = run_dir
        self._log = log
        self._team = team
        self._learning = learning
        self._memories = memories
        self._record = record
        self._checkpoints = Checkpoints(run_dir, config.training.keep_checkpoints)
        self._saved_step = -1
        self.measured: set[tuple[str, int]] = set()
        """Split and step of each evaluation in the log of a resumed run."""

    def is_best(self, validation: float | None) -> bool:
        """Whether no checkpoint has a better validation; False for weights without one."""
        if validation is None:
            return False
        best = self._checkpoints.best()
        return best is None or best.validation is None or validation >= best.validation

    def save(self, progress: Progress, validation: float | None) -> None:
        """Writes the checkpoint of the last step, unless it is there; no update may be in
        flight."""
        if self._saved_step == progress.step:
            return
        state = {
            "progress": progress.state(),
            "buffers": {name: buffer.state() for name, buffer in self._learning.buffers.items()},
            "memory": self._memories.state(),
            "run": self._record.state(),
        }
        self._log.sync()
        path = self._checkpoints.save(progress.step, state, self._team.save, validation)
        self._saved_step = progress.step
        self._log_saved(path, progress.step, validation)

    def save_models(self, step: int) -> None:
        """Writes the models of all learning policies after the last step."""
        folder = self._run_dir / "models"
        names = list(self._learning.learners)
        futures = [self._team.agents[n].save_model.remote(n, folder / n) for n in names]
        self._team.get(futures, "agents to save")
        models = {name: f"models/{name}" for name in names}
        self._log.append(CheckpointSaved(step, "models", final=True, models=models))

    def resume(self, checkpoint: Checkpoint) -> Progress:
        """Restores everything from a checkpoint of this run; returns its progress."""
        state = checkpoint.state
        differences = self._team.restore(checkpoint.path)
        progress = Progress.of(state["progress"])
        for name, rows in state["buffers"].items():
            self._learning.buffers[name].load_state(rows)
        self._memories.restore(state.get("memory", {}))  # added after 0.2
        self._learning.give_weights(list(self._learning.learners))
        self._saved_step = progress.step
        self._log.append(RunResumed(progress.step))
        if self._deterministic:
            for difference in differences:
                message = f"the last bits may change from here on: {difference}"
                self._log.append(LogLine("warning", message))
        self._read_log(checkpoint, progress.step)
        return progress

    def fork(self, origin: Checkpoint) -> Progress:
        """Restores weights and optimizer of another run's checkpoint, and what its methods pass on;
        returns its position in the problems, if these are the same. All else begins anew."""
        self._team.restore(origin.path, as_fork=True)
        before = Progress.of(origin.state["progress"])
        same = origin.state["run"]["problems"] == self._record.problems
        self._memories.fork(origin.state.get("memory", {}), same)
        self._learning.give_weights(list(self._learning.learners))
        if self._log.continued:
            self._log.append(RunResumed(before.step))
        return Progress(before.step, before.problems_seen if same else 0)

    def _read_log(self, checkpoint: Checkpoint, step: int) -> None:
        """Reads which evaluations are done, and emits the checkpoint event that a kill omitted."""
        self.measured, saved = measured_and_saved(read_all(self._run_dir))
        if str(checkpoint.path.relative_to(self._run_dir)) not in saved:
            self._log_saved(checkpoint.path, step, checkpoint.validation)

    def _log_saved(self, path: Path, step: int, validation: float | None) -> None:
        best = self._checkpoints.best()
        self._log.append(
            CheckpointSaved(
                step,
                str(path.relative_to(self._run_dir)),
                validation=validation,
                best=best is not None and best.step == step,
            )
        )
