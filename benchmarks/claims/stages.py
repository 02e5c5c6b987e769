"""Stages of a cell, each a process of the engine: training, reward model, evaluation.

A stage whose result exists is not run again. A training run that was interrupted resumes; what it
shares with other cells (the same settings and seed) lies under its digest. Invariant: nothing here
changes a result's file under the results' directory.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.claims.cell import Cell
from benchmarks.claims.teams import DEEPER
from benchmarks.conditions import ROOT
from engine.config.weight_sharing import weight_owner
from engine.events.log import FILE_NAME
from engine.run.summary import RunDigest

SHOWN_CHARS = 500
LEASE_SECONDS = 30.0
"""An engine stops when its runner has not renewed the lease for this long."""
STOP_SECONDS = 60.0
"""Seconds in which an engine saves its last step after SIGTERM, before it is killed."""


class StageFailed(Exception):
    """A stage of a cell failed; contains the first cause."""


@dataclass(frozen=True)
class Workplace:
    """Where stages run: the directory of the runs, and the limit of one stage in minutes."""

    folder: Path
    minutes: float = 60.0
    environment: Mapping[str, str] = field(default_factory=lambda: {"RAY_ADDRESS": ""})
    """What is added to the environment of a stage: the Ray that it joins, or that it starts its
    own."""

    def run_dir(self, cell: Cell) -> Path:
        return self.folder / f"train-{cell.training_digest[:16]}"

    def reward_model(self, cell: Cell) -> Path:
        return self.folder / f"reward-model-{cell.training_digest[:16]}"

    def report(self, cell: Cell) -> Path:
        return self.folder / f"evaluate-{cell.digest[:16]}.json"


def train(cell: Cell, place: Workplace) -> Path:
    """Trains the cell's team, or resumes its run; returns the directory of the run.

    Raises:
        StageFailed: the engine failed or exceeded the limit.
    """
    run_dir = place.run_dir(cell)
    if _state(run_dir) == "finished":
        return run_dir
    run_dir.mkdir(parents=True, exist_ok=True)
    config = run_dir / "config.json"
    if not config.is_file():
        draft = run_dir / "config.json.draft"
        draft.write_text(json.dumps(_located(cell, place)), "utf-8")
        draft.replace(config)
    _await_earlier_engine(run_dir)
    command = ["train", str(run_dir), "--lease-seconds", str(LEASE_SECONDS)]
    try:
        _engine(command, place, "training", lease=run_dir / "lease")
    except StageFailed as failed:
        cause = RunDigest.of(run_dir).error if (run_dir / FILE_NAME).is_file() else ""
        raise StageFailed(f"training: {cause}" if cause else str(failed)) from None
    return run_dir


def train_reward_model(cell: Cell, place: Workplace) -> Path:
    """Trains a reward model on the nodes of the cell's run; returns its directory.

    Raises:
        StageFailed: no reward model could be trained.
    """
    folder = place.reward_model(cell)
    if folder.is_dir():
        return folder
    draft = folder.with_name(f"{folder.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    command = ["reward-model", str(place.run_dir(cell)), "--out", str(draft), "--device", "cpu"]
    # 1: it is no better than a constant; it is saved anyway, and measured as it is.
    _engine([*command, "--seed", str(cell.seed)], place, "reward model", succeeds=(0, 1))
    draft.rename(folder)
    return folder


def evaluate(cell: Cell, place: Workplace) -> dict[str, Any]:
    """Evaluates the cell's team on unseen problems; returns the report of `engine evaluate`.

    Raises:
        StageFailed: the engine failed or exceeded the limit.
    """
    file = place.report(cell)
    if not file.is_file() or "attempts" not in _problem(file):  # of a version without the counts
        draft = file.with_suffix(f".{os.getpid()}.draft")
        _engine([*_evaluation(cell, place), "--json", str(draft)], place, "evaluation")
        draft.replace(file)
    return json.loads(file.read_text("utf-8"))


def _problem(report: Path) -> dict[str, Any]:
    """Returns the first problem of a report."""
    return json.loads(report.read_text("utf-8"))["problems"][0]


def models_of(cell: Cell, place: Workplace) -> dict[str, Path | str]:
    """Returns the model of each owner of weights, as it is measured."""
    owners = dict.fromkeys(weight_owner(agent) for agent in cell.config.agents)
    if cell.arm.joined:
        alone = [next(iter(models_of(one, place).values())) for one in cell.trainings]
        return dict(zip(owners, alone, strict=True))
    if cell.arm.trained:
        return {name: place.run_dir(cell) / "models" / name for name in owners}
    named = {agent.name: agent.model for agent in cell.config.agents}
    return {name: _model(named[name], place) for name in owners}


def _evaluation(cell: Cell, place: Workplace) -> list[str]:
    plan = cell.evaluation()
    settings = {**plan["settings"], "problems.seed": plan["problem_seed"]}
    if cell.arm.trained and not cell.arm.joined:
        references = [str(place.run_dir(cell))]
    else:
        references = [f"{name}={model}" for name, model in models_of(cell, place).items()]
        for agent in cell.config.agents:
            sampling = agent.sampling.model_dump(mode="json", exclude_defaults=True)
            for name, value in sampling.items():
                settings[f"agents.{agent.name}.sampling.{name}"] = value
    command = ["evaluate", "--agents", *references, "--dataset", "generated"]
    for option in ("problems", "samples", "nodes", "seed"):
        command += [f"--{option}", str(plan[option])]
    if plan["reward_model"]:
        command += ["--reward-model", str(place.reward_model(cell))]
    return [*command, "--set", *(f"{path}={json.dumps(v)}" for path, v in settings.items())]


def _located(cell: Cell, place: Workplace) -> dict[str, Any]:
    """Returns the settings of the run, with the directories of models that are made."""
    data = cell.config.model_dump(mode="json")
    for agent in data["agents"]:
        agent["model"] = _model(agent["model"], place)
    return data


def _model(model: str, place: Workplace) -> str:
    """Returns the model, or the directory of one that is made of a starter and a number."""
    if not model.startswith(DEEPER):
        return model
    from benchmarks.deeper import deeper

    starter, _, layers = model.removeprefix(DEEPER).partition(":")
    folder = place.folder / f"deeper-{starter}-{layers}"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=place.folder) as draft:
            made_here = deeper(starter, int(layers), Path(draft) / "model")
            if not folder.is_dir():  # another runner may have made the same
                made_here.rename(folder)
    return str(folder)


def _state(run_dir: Path) -> str:
    return RunDigest.of(run_dir).state if (run_dir / FILE_NAME).is_file() else ""


def _engine(
    arguments: Sequence[str],
    place: Workplace,
    stage: str,
    succeeds: Sequence[int] = (0,),
    lease: Path | None = None,
) -> None:
    """Runs a command of the engine; an interruption here stops it first. With a `lease`, which is
    renewed here, an engine whose runner was killed stops by itself."""
    command = [sys.executable, "-m", "engine", *arguments]
    environment = os.environ | place.environment
    deadline = time.monotonic() + 60 * place.minutes
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        try:
            while not _ended(process, deadline):
                if lease is not None:
                    lease.touch()
                if time.monotonic() >= deadline:
                    limit = f"{place.minutes:g} minutes (--minutes)"
                    raise StageFailed(f"{stage}: it took more than {limit}")
        except BaseException:
            _stop(process)
            raise
        output.seek(0)
        lines = [line.strip() for line in output if line.strip()]
    if process.returncode not in succeeds:
        reason = lines[-1][:SHOWN_CHARS] if lines else f"exit status {process.returncode}"
        raise StageFailed(f"{stage}: {reason}")


def _ended(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """Waits a second, but not past the deadline; returns whether the process has ended."""
    try:
        process.wait(timeout=max(0.0, min(1.0, deadline - time.monotonic())))
    except subprocess.TimeoutExpired:
        return False
    return True


def _await_earlier_engine(run_dir: Path) -> None:
    """Waits for the engine of a runner that was killed, which stops once its lease expires.

    Raises:
        StageFailed: it still runs after its deadline.
    """
    log = run_dir / FILE_NAME
    if not log.is_file():
        return
    deadline = time.monotonic() + LEASE_SECONDS + STOP_SECONDS
    with log.open("rb") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StageFailed(f"training: another engine runs in {run_dir}") from None
                time.sleep(0.5)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
