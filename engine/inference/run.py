"""Entry point of a search: runs a run directory from its files to a recorded exit status.

RUN_DIR holds config.json (the resolved settings, with the team), problem.jsonl (the problem, in
Grove's own format) and events.jsonl (the log, also the lock against a second engine). Invariants:
the log is one that `train` could have written, plus an answer; unless the engine is killed, the
last event records how it ended. A search that is begun again begins with an empty tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from engine.config.generator_support import is_endpoint
from engine.config.schema import RunConfig, read_config
from engine.events.log import EventLog
from engine.events.vocabulary import LogLine, RunState, RunStateChanged, RunWaiting
from engine.hub.pins import pin_run
from engine.inference.backends import scoring
from engine.inference.local_team import LocalTeam
from engine.inference.search import Outcome, search_problem
from engine.inference.signals import ended_alike, stopping
from engine.inference.telemetry import SearchRecorder
from engine.policy.models.load import check_agent, model_warnings
from engine.problems.errors import DatasetError, DatasetIssue
from engine.problems.jsonl import SEARCHED_FILE, load_problems, save_problems
from engine.problems.problem import Problem
from engine.resources.requirements import require_bounds
from engine.run.clock import run_clock
from engine.run.exit_status import ExitCode, isolation_line, report_refusal
from engine.run.failure import error_raised
from engine.run.lease import LeaseGuard
from engine.run.system_samples import sampling
from engine.sandbox.limits import SandboxCaps

PHASE = "search"


def prepare_search(run_dir: Path, config: RunConfig, problem: Problem) -> None:
    """Writes the files of a search to its run directory. Raises OSError."""
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / "config.json").write_text(config.model_dump_json(indent=1))
    save_problems(run_dir / SEARCHED_FILE, [problem])


def search_run(
    run_dir: Path, lease_seconds: float | None = None
) -> tuple[ExitCode, Problem, Outcome | None]:
    """Searches the problem of a directory; returns exit code, problem, and outcome if it began.

    With `lease_seconds`, the process that watches the run must touch RUN_DIR/lease at least that
    often. SIGTERM ends the search with the best answer so far, Ctrl-C after the open nodes finish.

    Raises:
        ConfigError, HubError, HardwareError, ModelError, DatasetError: before anything has started.
    """
    try:
        config = pin_run(read_config(run_dir / "config.json"), run_dir)
        require_bounds(SandboxCaps.from_environment().of_run(config))
        for agent in config.agents:
            if not is_endpoint(agent.model):
                check_agent(agent)
        problem = _problem(run_dir / SEARCHED_FILE)
    except (ValueError, OSError) as error:
        report_refusal(run_dir, error)
        raise
    log = EventLog(run_dir)
    try:
        code, outcome = _search(config, run_dir, log, problem, lease_seconds)
        return code, problem, outcome
    finally:
        log.close()


def _problem(file: Path) -> Problem:
    problems = load_problems(file)
    if len(problems) > 1:
        remedy = f"holds {len(problems)} problems; a search has one"
        raise DatasetError([DatasetIssue(str(file), 2, "id", problems[1].id, remedy)])
    return problems[0]


def _search(
    config: RunConfig, run_dir: Path, log: EventLog, problem: Problem, lease_seconds: float | None
) -> tuple[ExitCode, Outcome | None]:
    try:
        log.append(RunStateChanged(RunState.STARTING))
        recorder = SearchRecorder(log, [agent.name for agent in config.agents])
        with ended_alike(), ExitStack() as stack:
            clock = run_clock(config.agents, run_dir, config.inference.reward_model)
            scorer = stack.enter_context(scoring(config, clock))
            team = stack.enter_context(
                LocalTeam(config, waiting=_wait_reporter(log), run_dir=run_dir, clock=clock)
            )
            stack.enter_context(_leased(run_dir, lease_seconds, team))
            team.ready()
            log.append(LogLine("info", f"agents are ready: {', '.join(team.names)}"))
            log.append(isolation_line(team.sandbox.tier()))
            for line in model_warnings(config.agents):
                log.append(LogLine("warning", line))
            for cut in team.sandbox.caps.cuts(config.sandbox, [problem]):
                log.append(LogLine("warning", cut))
            log.append(RunStateChanged(RunState.RUNNING))
            with stopping(team):
                with sampling(log, run_dir):
                    outcome = search_problem(team, problem, scorer, recorder)
                recorder.answered(outcome, scorer is not None, team.stopping)
                return _ended(log, team, outcome), outcome
    except KeyboardInterrupt:
        log.append(RunStateChanged(RunState.STOPPED, "stop requested before the search began"))
        return ExitCode.STOPPED, None
    except Exception as error:
        log.append(error_raised(error))
        log.append(RunStateChanged(RunState.FAILED, str(error)))
        return ExitCode.FAILED, None


def _wait_reporter(log: EventLog) -> Callable[[str, float], None]:
    def waiting(name: str, deadline: float) -> None:
        log.append(RunWaiting(name, deadline))

    return waiting


@contextmanager
def _leased(run_dir: Path, lease_seconds: float | None, team: LocalTeam) -> Iterator[None]:
    """Context in which the team abandons its work once the run's lease is no longer held."""
    guard = LeaseGuard(run_dir, lease_seconds, team.leave) if lease_seconds else None
    try:
        yield
    finally:
        if guard:
            guard.close()


def _ended(log: EventLog, team: LocalTeam, outcome: Outcome) -> ExitCode:
    if team.stopping:
        log.append(RunStateChanged(RunState.STOPPED, "stop requested"))
        return ExitCode.STOPPED
    if outcome.error:
        log.append(error_raised(outcome.error, PHASE))
        log.append(RunStateChanged(RunState.FAILED, outcome.failure))
        return ExitCode.FAILED
    log.append(RunStateChanged(RunState.FINISHED))
    return ExitCode.FINISHED
