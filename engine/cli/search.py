"""`python -m engine search`: a team's search for the answer to one problem.

Exit status: 0 if the answer passes all public tests; 1 if it does not, or if the search failed
(an agent failed, the sandbox was lost); 2 if it could not start: bad input, an agent that cannot
start, no sandbox; 3 if it was interrupted. Ctrl-C finishes the open nodes and answers from the
closed ones; a second one, or SIGTERM, leaves them open. The tree is written in every case.

With `--run-dir` it writes the events of a run as it goes, and the exit status is that of `train`
(`engine.run.exit_status.ExitCode`), whether the answer is right or not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.config.encoding import for_terminal
from engine.config.log_lines import configure_engine
from engine.config.printable import printable
from engine.config.schema import RunConfig, read_config
from engine.inference.model_forks import prepare_forks
from engine.inference.signals import ended_alike, stopping
from engine.problems.formats import DETECTED
from engine.problems.load import format_names, load_dataset
from engine.problems.problem import Problem
from engine.recipes import parse_override
from engine.resources.whole_files import check_writable, save_json
from engine.run.spans import run_span

if TYPE_CHECKING:  # the other commands must not import these
    from engine.cli.progress import Progress
    from engine.inference.local_team import LocalTeam
    from engine.inference.selection import Scorer
    from engine.rollout.forest import ClosedNode, GrowingTree, OpenNode

NODES, MAX_NODES, IN_FLIGHT = 60, 5000, 8
INTERRUPTED = 3
"""Exit status of a search that was interrupted."""
STARTING = "starting agents and sandbox"
_SHOWN_IDS = 5


def add_search(command: Any) -> None:
    """Declares the arguments of `search`."""
    command.add_argument("--problem", type=Path, metavar="FILE", help="file of problems")
    command.add_argument("--id", help="which problem of the file, if it holds several")
    add_agents(command, required=False)
    command.add_argument(
        "--nodes", type=count, help=f"budget ({NODES}; {MAX_NODES} with --tokens or --seconds)"
    )
    command.add_argument("--tokens", type=count, help="budget of output tokens")
    command.add_argument("--seconds", type=seconds, help="budget of seconds")
    command.add_argument(
        "--in-flight", type=count, help=f"maximum nodes in flight ({IN_FLIGHT}); 1: sequential"
    )
    command.add_argument(
        "--no-early-stop", action="store_true", help="continue after a node passes all public tests"
    )
    command.add_argument("--out", type=Path, metavar="TREE", help="write the whole tree, as JSON")
    command.add_argument("--json", action="store_true", help="one JSON object, for machines")
    command.add_argument(
        "--run-dir", type=Path, metavar="RUN_DIR",
        help="write events.jsonl there; without --problem and --agents, search what it holds",
    )  # fmt: skip
    command.add_argument("--lease-seconds", type=seconds, help="as of `train`; only with --run-dir")
    command.set_defaults(run=_search)


def add_agents(command: Any, required: bool = True) -> None:
    """Declares the arguments for the team and for arbitrary settings."""
    command.add_argument(
        "--agents", nargs="+", action="extend", required=required, metavar="AGENT",
        help="[NAME=]starter:NAME, package:NAME (after `grove models add NAME`), a model's "
        "directory, a run's directory or checkpoint (all its agents), "
        "registry:NAME@VERSION of a server (GROVE_ADDRESS, GROVE_TOKEN), "
        "hf:ORG/NAME@REVISION of a hub (GROVE_HUB=1), or "
        "http://HOST:PORT/v1#MODEL (key: OPENAI_API_KEY)",
    )  # fmt: skip
    command.add_argument("--format", default=DETECTED, choices=format_names())
    command.add_argument("--seed", type=whole, default=0)
    command.add_argument(
        "--reward-model", metavar="DIR", help="decides among nodes that are equal on public tests"
    )
    command.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="PATH=VALUE", dest="overrides",
        help="any setting, e.g. search.rho=0.97 agents.oak.sampling.temperature=0.7",
    )  # fmt: skip


def count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:10]) < 2**31):
        raise argparse.ArgumentTypeError(f"{text}: give a whole number of at least 1")
    return int(text)


def whole(text: str) -> int:
    return 0 if text == "0" else count(text)


def seconds(text: str) -> float:
    number = float(text)  # argparse reports what is not a number
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text}: give seconds, more than 0")
    return number


def _search(arguments: argparse.Namespace) -> int:
    if arguments.run_dir:
        return _search_run_dir(arguments)
    from engine.cli.progress import Progress
    from engine.inference.search import record, search_problem, summary

    _require(arguments)
    config = _search_config(arguments)
    prepare_forks(config)
    problem = _one_problem(arguments)
    if arguments.out:
        check_writable(arguments.out)
    try:
        line = Progress(STARTING)
        with ended_alike(), started_team(config, "searching", line) as (team, scorer):
            progress = TreeProgress(config.search.nodes_per_tree, line)
            with stopping(team):
                outcome = search_problem(team, problem, scorer, progress)
                tree = record(outcome, team) if arguments.out else None
    except KeyboardInterrupt:
        print("interrupted before the search ended", file=sys.stderr)
        return INTERRUPTED
    _print_result(arguments, problem, summary(outcome))
    if tree is not None:  # last: a full disk takes no answer away
        save_json(arguments.out, tree)
    if team.stopping:
        return INTERRUPTED
    return 0 if outcome.solved and not outcome.failure else 1


def _search_run_dir(arguments: argparse.Namespace) -> int:
    """Searches in a run directory, which it first prepares if a problem and a team are given."""
    run_dir = arguments.run_dir.absolute()
    configure_engine(run_dir.name)
    if arguments.out:
        raise ValueError("--out: the events in --run-dir already hold the whole tree; leave it out")
    if is_given := bool(arguments.problem or arguments.agents):
        _require(arguments)
        config = _search_config(arguments)
    else:
        config = _readable_config(run_dir)
    if config:
        prepare_forks(config)  # before the imports below, which happen alongside
    from engine.inference.run import prepare_search, search_run
    from engine.inference.search import summary

    if config and is_given:
        prepare_search(run_dir, config, _one_problem(arguments))
    with run_span("search", run_dir.name) as noted:
        code, problem, outcome = search_run(run_dir, arguments.lease_seconds)
        noted(code)
    if outcome:
        _print_result(arguments, problem, summary(outcome))
    return code


def _readable_config(run_dir: Path) -> RunConfig | None:
    """Returns the settings of a run directory; None if they cannot be read, which the search
    reports."""
    with suppress(ValueError, OSError):
        return read_config(run_dir / "config.json")
    return None


def _require(arguments: argparse.Namespace) -> None:
    missing = [name for name in ("problem", "agents") if not getattr(arguments, name)]
    if missing:
        raise ValueError(f"--{' and --'.join(missing)} missing: give a problem and a team")


def _print_result(arguments: argparse.Namespace, problem: Problem, result: dict[str, Any]) -> None:
    if arguments.json:
        print(json.dumps({"problem": problem.id, **result}))
    else:
        _print_answer(result)


def inference_settings(arguments: argparse.Namespace, options: dict[str, Any]) -> RunConfig:
    """Returns the settings of a command: its own options, overridden by `--set`.

    Raises:
        ConfigError, ValueError: see `inference_config`.
    """
    from engine.inference.agents import inference_config

    common = {"seed": arguments.seed, "inference.reward_model": arguments.reward_model}
    return inference_config(
        arguments.agents, common | options | dict(map(parse_override, arguments.overrides))
    )


def _search_config(arguments: argparse.Namespace) -> RunConfig:
    default_nodes = MAX_NODES if arguments.tokens or arguments.seconds else NODES
    nodes = arguments.nodes or default_nodes
    options = {
        "search.nodes_per_tree": nodes,
        "search.nodes_in_flight": arguments.in_flight or min(IN_FLIGHT, nodes),
        "search.tokens_per_tree": arguments.tokens,
        "search.seconds_per_tree": arguments.seconds,
        "search.stop_when_solved": not arguments.no_early_stop,
    }
    return inference_settings(arguments, options)


def _one_problem(arguments: argparse.Namespace) -> Problem:
    problems = load_dataset(arguments.problem, arguments.format).problems
    if arguments.id is not None:
        problems = [problem for problem in problems if problem.id == arguments.id]
        if not problems:
            raise ValueError(f"--id {arguments.id}: {arguments.problem} holds no such problem")
    if len(problems) > 1:
        examples = ", ".join(problem.id for problem in problems[:_SHOWN_IDS])
        raise ValueError(
            f"{arguments.problem} holds {len(problems)} problems; choose one with --id, "
            f"for example {examples}; `evaluate` takes them all"
        )
    return problems[0]


@contextmanager
def started_team(
    config: RunConfig, activity: str, progress: Progress, total: int = 0
) -> Iterator[tuple[LocalTeam, Scorer | None]]:
    """Yields a started local team and its reward model, if there is one; `progress` is shown.

    With a `total` of samples the team reports its progress itself.

    Raises:
        ValueError: an agent, the reward model or the sandbox cannot be used; with the reason.
    """
    from engine.inference.backends import BackendError, scoring
    from engine.inference.local_team import LocalTeam
    from engine.policy.models.load import model_warnings
    from engine.resources.requirements import require_bounds
    from engine.run.clock import run_clock
    from engine.sandbox.host.errors import SandboxUnavailable
    from engine.sandbox.limits import SandboxCaps

    require_bounds(SandboxCaps.from_environment().of_run(config))
    for line in model_warnings(config.agents):
        print(f"warning: {line}", file=sys.stderr)
    clock = run_clock(config.agents, reward_model=config.inference.reward_model)
    try:
        with (
            progress,
            scoring(config, clock) as scorer,
            LocalTeam(config, clock=clock) as team,
        ):
            team.ready()
            if total:
                team.report, team.count = progress.update, progress.count
            progress.begin(activity, total)
            yield team, scorer
    except (BackendError, SandboxUnavailable) as error:
        raise ValueError(str(error)) from error


@dataclass
class TreeProgress:
    """Progress line of a search (a `RolloutSink`)."""

    nodes: int
    progress: Progress
    written: int = 0
    best: float = 0.0
    dropped: int = 0
    by_agent: dict[str, int] = field(default_factory=dict)

    def opened(self, claim: OpenNode) -> None:
        pass

    def closed(self, tree: GrowingTree, node: ClosedNode) -> None:
        self.written += 1
        self.by_agent[node.agent] = self.by_agent.get(node.agent, 0) + 1
        if node.score is None:
            self.dropped += 1
        else:
            self.best = max(self.best, node.score)
        shares = ", ".join(f"{name} {count}" for name, count in self.by_agent.items())
        dropped = f"; {self.dropped} could not be verified" if self.dropped else ""
        self.progress.update(
            f"{self.written} of {self.nodes} nodes ({shares}), best passes "
            f"{self.best:.0%} of the public tests{dropped}"
        )


def _print_answer(result: dict[str, Any]) -> None:
    answer = result["answer"]
    if result["failure"]:
        print(f"the search failed: {printable(str(result['failure']))}", file=sys.stderr)
    cost = f"{result['nodes_written']} nodes, {result['tokens']} tokens, {result['seconds']:.1f} s"
    if answer is None:
        print(f"no answer: nothing was verified; {cost}", file=sys.stderr)
        return
    # Only the program on stdout, so that it can be piped into a file.
    print(for_terminal(answer["program"]))
    print(
        f"node {answer['node']} of {answer['agent']} passes {answer['public']:.0%} of the public "
        f"tests; {cost}; ended: {result['ended']}",
        file=sys.stderr,
    )
