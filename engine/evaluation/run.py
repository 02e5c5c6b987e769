"""Evaluation run, which measures and does not learn: `python -m engine train RUN_DIR` of a
directory with evaluation.json.

It follows the rules of all runs: the log records how it ended, an expired lease ends it, SIGTERM
stops it. Started again, it repeats the measurement. `config.json` defines who is measured
(`agents`), on what (`problems`: the first `problems.test` of them, in the order of `problems.seed`)
and how (`evaluation`; with trees of one node there is no search).
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path

from engine.config.generator_support import start_deadline
from engine.config.problems import ProblemsConfig
from engine.config.schema import RunConfig, read_config
from engine.evaluation.figures import figures
from engine.evaluation.measurement import Measurement, measure
from engine.evaluation.result_events import outcomes_event, result_event
from engine.events.log import EventLog
from engine.events.vocabulary import (
    LogLine,
    RunState,
    RunStateChanged,
    RunWaiting,
)
from engine.hub.pins import pin_run
from engine.inference.local_team import LocalTeam
from engine.inference.sources import Interrupted
from engine.policy.models.load import check_agent, model_warnings
from engine.problems.generator import GeneratedProblems, Split
from engine.problems.load import load_dataset
from engine.problems.problem import Problem
from engine.problems.source import GENERATED
from engine.problems.splits import shuffled
from engine.resources.requirements import require_bounds
from engine.rollout.long_statements import divided_by_length
from engine.run.clock import run_clock
from engine.run.exit_status import ExitCode, isolation_line, log_refusal
from engine.run.failure import error_raised
from engine.run.lease import LeaseGuard
from engine.run.system_samples import sampling
from engine.sandbox.limits import SandboxCaps

SPLIT = "test"
REPORT_SECONDS = 5.0


def evaluate_run(run_dir: Path, lease_seconds: float | None = None) -> ExitCode:
    """Measures as the run directory specifies; returns the exit status."""
    stop = threading.Event()
    signals = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in signals}
    log = EventLog(run_dir)
    guard = LeaseGuard(run_dir, lease_seconds, stop.set) if lease_seconds else None
    try:
        log.append(RunStateChanged(RunState.STARTING))
        return _evaluate(run_dir, log, stop)
    finally:
        if guard:
            guard.close()
        log.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def _evaluate(run_dir: Path, log: EventLog, stop: threading.Event) -> ExitCode:
    try:
        config = pin_run(read_config(run_dir / "config.json"), run_dir)
        require_bounds(SandboxCaps.from_environment().of_run(config))
        for agent in config.agents:
            check_agent(agent)
        problems = _problems(config.problems)
    except (ValueError, OSError) as error:
        log_refusal(log, error)
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return ExitCode.REFUSED
    try:
        measurement, seconds = _measured(run_dir, config, problems, log, stop)
    except Interrupted:
        log.append(RunStateChanged(RunState.STOPPED, "stop requested"))
        return ExitCode.STOPPED
    except Exception as error:
        log.append(error_raised(error))
        log.append(RunStateChanged(RunState.FAILED, str(error)))
        return ExitCode.FAILED
    values = {name: figure.values for name, figure in figures(measurement).items()}
    outcomes = outcomes_event(measurement, values, 0, SPLIT)
    log.append(result_event(measurement, outcomes, config.evaluation.tree_nodes, seconds))
    log.append(outcomes)
    log.append(RunStateChanged(RunState.FINISHED))
    return ExitCode.FINISHED


def _problems(config: ProblemsConfig) -> list[Problem]:
    if config.dataset == GENERATED:
        return GeneratedProblems.of(config).first(Split.TEST, config.test)
    return shuffled(load_dataset(config.dataset, config.format).problems, config.seed)[
        : config.test
    ]


def _measured(
    run_dir: Path,
    config: RunConfig,
    problems: list[Problem],
    log: EventLog,
    stop: threading.Event,
) -> tuple[Measurement, float]:
    if stop.is_set():
        raise Interrupted
    log.append(RunWaiting("agents to start", start_deadline(config.agents).seconds))
    clock = run_clock(config.agents, run_dir)
    with LocalTeam(config, _ProgressLog(log), clock=clock) as team:
        threading.Thread(target=_leave, args=(team, stop), daemon=True).start()
        team.ready()
        log.append(RunWaiting(""))
        log.append(isolation_line(team.sandbox.tier()))
        for line in model_warnings(config.agents):
            log.append(LogLine("warning", line))
        for cut in team.sandbox.caps.cuts(config.sandbox, problems):
            log.append(LogLine("warning", cut))
        problems, long = divided_by_length(problems, team.too_long)
        for problem, why in long:
            log.append(LogLine("warning", f"problem left out: {problem.id}: its statement {why}"))
        if not problems:
            raise ValueError(f"no problem is left: {long[0][0].id}: its statement {long[0][1]}")
        log.append(RunStateChanged(RunState.RUNNING))
        started = time.monotonic()
        search = config.evaluation.tree_nodes > 1
        with sampling(log, run_dir):
            measurement = measure(team, config, problems, [config.seed, 0xEA1], search=search)
        return measurement, time.monotonic() - started


def _leave(team: LocalTeam, stop: threading.Event) -> None:
    stop.wait()
    team.leaving = True


class _ProgressLog:
    """Progress callback that logs a line every few seconds; only the log's writer thread calls
    it."""

    def __init__(self, log: EventLog):
        self.log = log
        self._reported = 0.0

    def __call__(self, text: str) -> None:
        if time.monotonic() - self._reported >= REPORT_SECONDS:
            self._reported = time.monotonic()
            self.log.append(LogLine("info", text))
