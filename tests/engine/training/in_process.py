"""A training run whose driver is the test's process; its actors are the real ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.config.schema import RunConfig
from engine.events.log import EventLog
from engine.problems.source import load_problem_set
from engine.rollout.step_rollout import StepRollout
from engine.training.compatibility import RunRecord
from engine.training.team import Team
from engine.training.trainer import Trainer
from engine.training.update_coordinator import UpdateCoordinator


@contextmanager
def a_trainer(
    folder: Path,
    config: RunConfig,
    address: str,
    coordinator: type[UpdateCoordinator] = UpdateCoordinator,
    rollout: type[StepRollout] = StepRollout,
) -> Iterator[Trainer]:
    """Yields a trainer whose team is ready, on the Ray of an address. Its events are written to the
    folder's log, which is complete after the block."""
    compute = config.compute.model_copy(update={"ray_address": address})
    problems = load_problem_set(config.problems)
    team = Team(config.model_copy(update={"compute": compute}), lambda name, deadline: None)
    folder.mkdir(exist_ok=True)
    log = EventLog(folder)
    try:
        team.ready()
        record = RunRecord.of(config, problems)
        parts = {"coordinator": coordinator, "rollout": rollout}
        yield Trainer(config, folder, log, team, problems, lambda: False, record, **parts)
    finally:
        team.close()
        log.close()
