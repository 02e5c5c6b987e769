"""Entry point of training: runs a run directory from config.json to a recorded exit status.

RUN_DIR holds config.json (the resolved settings), events.jsonl (the log, also the lock against a
second engine), checkpoints/ and models/. Invariant: unless the engine is killed, the last event
records how it ended; this includes refusals, if the directory already has a log.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.config.deadlines import CALL
from engine.config.schema import RunConfig, read_config
from engine.config.setting_warnings import setting_warnings
from engine.evaluation.gauges.fold import RunGauges
from engine.events.log import EventLog
from engine.events.vocabulary import LogLine, RunState, RunStateChanged, RunWaiting
from engine.events.watched_log import WatchedLog, Watcher
from engine.health.monitor import Monitor
from engine.health.setup import Setup
from engine.hub.pins import pin_run
from engine.hub.reference import is_hub
from engine.policy.models.load import check_agent, model_warnings
from engine.problems.check import Verify
from engine.problems.errors import DatasetIssue
from engine.problems.problem import Problem
from engine.problems.source import ProblemSet, load_problem_set
from engine.resources.requirements import require
from engine.rollout.types import Stopped
from engine.run.checkpoint import Checkpoint, CheckpointError, Checkpoints
from engine.run.exit_status import ExitCode, isolation_line, log_refusal, report_refusal
from engine.run.failure import error_raised
from engine.run.lease import LeaseGuard
from engine.run.system_samples import sampling
from engine.sandbox.host.verify import Verification
from engine.sandbox.limits import SandboxCaps
from engine.training.compatibility import ResumeError, RunRecord, check_compatible
from engine.training.fork import is_fork, origin_line, origin_of
from engine.training.reference_check import without_failing_references
from engine.training.statement_check import without_long_statements
from engine.training.team import Team
from engine.training.trainer import Trainer


def train(run_dir: Path, lease_seconds: float | None = None) -> ExitCode:
    """Trains, or resumes, the run of a directory.

    With `lease_seconds`, the process that watches the run must touch RUN_DIR/lease at least that
    often; an engine without a watcher stops by itself. SIGTERM and SIGINT stop it too.

    Raises:
        ConfigError, HubError, HardwareError, ModelError, DatasetError: before anything has started.
    """
    try:
        config = pin_run(read_config(run_dir / "config.json"), run_dir)
        for agent in config.agents:
            if is_hub(agent.model):
                check_agent(agent)  # downloads it: `require` needs its shape
        require(SandboxCaps.from_environment().of_run(config), run_dir)
        for agent in config.agents:
            check_agent(agent)
        problems = load_problem_set(config.problems)
    except (ValueError, OSError) as error:
        report_refusal(run_dir, error)
        raise
    stop = threading.Event()
    _stop_on_signals(stop)
    log = WatchedLog(run_dir, _watchers(config))
    guard = LeaseGuard(run_dir, lease_seconds, stop.set) if lease_seconds else None
    try:
        return _train(config, run_dir, log, problems, stop)
    finally:
        if guard:
            guard.close()
        log.close()


def _watchers(config: RunConfig) -> dict[str, Callable[[], Watcher]]:
    """Returns what reads along with the log; gauges only if some are chosen."""
    setup, options = Setup.of(config), config.evaluation
    gauges = {"gauges": lambda: RunGauges(options)} if options.gauges else {}
    return {"health": lambda: Monitor(setup), **gauges}


def _log_left_out(log: EventLog, issues: Sequence[DatasetIssue]) -> None:
    for issue in issues:
        log.append(LogLine("warning", f"problem left out: {issue}"))


def _log_warnings(log: EventLog, config: RunConfig, problems: ProblemSet) -> None:
    for line in (*map(str, setting_warnings(config)), *model_warnings(config.agents)):
        log.append(LogLine("warning", line))
    for cut in SandboxCaps.from_environment().cuts(config.sandbox, _of_a_file(problems)):
        log.append(LogLine("warning", cut))


def _of_a_file(problems: ProblemSet) -> list[Problem]:
    """Returns all problems that may have their own limits; generated ones have none, and are not
    made before they are needed."""
    if not problems.locations:
        return []
    return [*problems.train, *problems.validation, *problems.test]


def _usable(
    problems: ProblemSet, config: RunConfig, run_dir: Path, team: Team, stop: threading.Event
) -> ProblemSet:
    """Returns the problems whose statements fit into the models' contexts and, where actions are
    programs, whose references pass their tests; `left_out` has the others too."""
    fitting = without_long_statements(problems, team.too_long)
    if not config.environment.judges_programs:  # no reference of a program is an action elsewhere
        return fitting
    return without_failing_references(fitting, run_dir, _verifying(team, stop))


def _verifying(team: Team, stop: threading.Event) -> Verify:
    def verify(programs: Sequence[tuple[Problem, str]]) -> list[Verification]:
        if stop.is_set():
            raise Stopped
        return team.verifier.verify(programs, "sandbox to run the references")

    return verify


def _stop_on_signals(stop: threading.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())


def _train(
    config: RunConfig, run_dir: Path, log: EventLog, problems: ProblemSet, stop: threading.Event
) -> ExitCode:
    team: Team | None = None
    try:
        log.append(RunStateChanged(RunState.STARTING))
        _log_left_out(log, problems.left_out)
        _log_warnings(log, config, problems)
        record = RunRecord.of(config, problems)
        checkpoint = _checkpoint(config, run_dir, record, log)
        team = Team(
            config,
            lambda name, deadline: log.append(RunWaiting(name, deadline)),
            run_dir.absolute(),
        )
        # Starting Ray installs its own SIGTERM handler, which aborts: ours is installed last.
        _stop_on_signals(stop)
        sizes = ", ".join(f"{name} {size}" for name, size in team.ready().items())
        log.append(LogLine("info", f"agents are ready: {sizes}"))
        log.append(isolation_line(team.verifier.tier()))
        usable = _usable(problems, config, run_dir, team, stop)
        _log_left_out(log, usable.left_out[len(problems.left_out) :])
        log.append(RunStateChanged(RunState.RUNNING))
        with sampling(log, run_dir):
            Trainer(config, run_dir, log, team, usable, stop.is_set, record, checkpoint).run()
        log.append(RunStateChanged(RunState.FINISHED))
        return ExitCode.FINISHED
    except Stopped:
        log.append(RunStateChanged(RunState.STOPPED, "stop requested"))
        return ExitCode.STOPPED
    except (ResumeError, CheckpointError) as error:
        log_refusal(log, error)
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return ExitCode.REFUSED
    except Exception as error:
        log.append(error_raised(error))
        log.append(RunStateChanged(RunState.FAILED, str(error)))
        return ExitCode.FAILED
    finally:
        if team:
            team.close()
        # Closing Ray restores the default action of SIGTERM, which would change the exit code.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _checkpoint(
    config: RunConfig, run_dir: Path, record: RunRecord, log: EventLog
) -> Checkpoint | None:
    """Returns the checkpoint from which the run resumes or forks; None if it starts anew.

    Raises:
        ResumeError: the run was begun with other settings, problems or models.
        CheckpointError: all checkpoints are damaged.
    """
    checkpoints = Checkpoints(run_dir, config.training.keep_checkpoints)
    if not checkpoints.folder.is_dir() and not is_fork(run_dir):
        return None
    log.append(RunWaiting("checkpoint to be checked", CALL.seconds))
    latest = checkpoints.latest()
    origin = None if latest else origin_of(run_dir, record)
    log.append(RunWaiting(""))
    if origin:
        log.append(origin_line(origin, run_dir))
    if latest is None:
        return origin
    for issue in latest.damaged:
        line = f"damaged, and set aside: checkpoints/{issue}; going on from {latest.path.name}"
        log.append(LogLine("warning", line))
    check_compatible(latest.state["run"], record)
    return latest
