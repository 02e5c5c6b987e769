"""`python -m engine`: the trainer without the web side."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from engine.config import deadlines
from engine.config.encoding import escape_what_cannot_be_encoded
from engine.config.printable import printable
from engine.config.schema import RunConfig
from engine.config.setting_warnings import setting_warnings
from engine.recipes import load_recipe, parse_override, recipe_data, recipe_names
from engine.resources.child_processes import restore_sigchld
from engine.resources.loopback import except_loopback
from engine.sandbox.host.errors import SandboxUnavailable


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands."""
    parser = argparse.ArgumentParser(prog="python -m engine", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (
        _add_train, _add_prepare, _add_fork, _add_config, _add_starters, _add_golden, _add_doctor,
        _add_problems, _add_search, _add_evaluate, _add_compare, _add_reward_model,
        _add_same, _add_models, _add_plugins,
    ):  # fmt: skip
        add(commands)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Dispatches a command and returns the exit code."""
    escape_what_cannot_be_encoded()
    restore_sigchld()
    except_loopback()
    arguments = build_parser().parse_args(argv)
    try:
        deadlines.check()
        return int(arguments.run(arguments) or 0)
    except (ValueError, OSError, SandboxUnavailable) as error:
        print(f"{type(error).__name__}: {printable(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _add_train(commands: Any) -> None:
    from engine.cli.train import add_arguments

    command = commands.add_parser("train", help="train, or resume, the run of a directory")
    add_arguments(command)


def _add_same(commands: Any) -> None:
    from engine.cli.compare_runs import add_arguments

    add_arguments(commands.add_parser("same", help="compare two runs bit for bit"))


def _add_prepare(commands: Any) -> None:
    command = commands.add_parser("prepare", help="write RUN_DIR/config.json from a recipe")
    command.add_argument("run_dir", type=Path, metavar="RUN_DIR")
    command.add_argument("recipe", metavar="RECIPE", help=f"one of {', '.join(recipe_names())}")
    command.add_argument(
        "overrides", nargs="*", metavar="PATH=VALUE", help="e.g. search.nodes_per_tree=4"
    )
    command.add_argument("--json", action="store_true", help="print all settings as JSON")
    command.set_defaults(run=_prepare)


def _prepare(arguments: argparse.Namespace) -> int:
    from engine.resources.small_machine import lines_of, small_machine, with_defaults

    data = recipe_data(arguments.recipe, dict(map(parse_override, arguments.overrides)))
    config, added = with_defaults(data, small_machine())
    print(*lines_of(added), sep="\n", end="\n" if added else "", file=sys.stderr)
    for warning in setting_warnings(config):
        print(f"warning: {warning}", file=sys.stderr)
    arguments.run_dir.mkdir(parents=True, exist_ok=True)
    (arguments.run_dir / "config.json").write_text(config.model_dump_json(indent=1))
    if arguments.json:
        print(config.model_dump_json())
    return 0


def _add_fork(commands: Any) -> None:
    from engine.training.fork import add_arguments

    add_arguments(commands.add_parser("fork", help="prepare a run that starts at a checkpoint"))


def _add_config(commands: Any) -> None:
    command = commands.add_parser("config", help="print the JSON schema of all settings")
    command.set_defaults(run=lambda _: print(json.dumps(RunConfig.model_json_schema(), indent=1)))


def _add_starters(commands: Any) -> None:
    command = commands.add_parser("starters", help="make the starter policies from a seed")
    command.add_argument("--seed", type=_seed, default=1)
    command.add_argument("--out", type=Path, required=True, metavar="DIR")
    command.add_argument("--json", action="store_true", help="print where they are as JSON")
    command.set_defaults(run=_starters)


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"{text}: give a whole number of at most 9 digits")
    return int(text)


def _starters(arguments: argparse.Namespace) -> int:
    from engine.policy.starters.make import make_starters

    def report(name: str, step: int, steps: int, loss: float) -> None:
        print(f"{name}: step {step} of {steps}, loss {loss:.3f}", file=sys.stderr, flush=True)

    arguments.out.mkdir(parents=True, exist_ok=True)  # not after minutes of training
    paths = make_starters(arguments.seed, arguments.out, report)
    if arguments.json:
        print(json.dumps({"seed": arguments.seed, "starters": {p.name: str(p) for p in paths}}))
    else:
        print(*paths, sep="\n")
    return 0


def _add_golden(commands: Any) -> None:
    command = commands.add_parser(
        "golden", help="run worked numbers through the training functions"
    )
    command.add_argument("file", type=Path, metavar="FILE", help="JSON file of cases")
    command.add_argument("--json", action="store_true", help="one JSON object, for machines")
    command.set_defaults(run=_golden)


def _golden(arguments: argparse.Namespace) -> int:
    from engine.golden.cases import check_file

    return check_file(arguments.file, arguments.json)


def _add_doctor(commands: Any) -> None:
    command = commands.add_parser(
        "doctor", help="check sandbox, torch and Ray on this machine, or what a recipe needs"
    )
    command.add_argument(
        "recipe", nargs="?", metavar="RECIPE", help="check whether it fits on this machine"
    )
    command.add_argument("overrides", nargs="*", metavar="PATH=VALUE", help="as of `prepare`")
    command.add_argument("--json", action="store_true", help="one JSON object, for machines")
    command.set_defaults(run=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    from engine.cli.doctor import examine, examine_recipe

    if arguments.recipe is None:
        return examine(arguments.json)
    overrides = dict(map(parse_override, arguments.overrides))
    return examine_recipe(load_recipe(arguments.recipe, overrides), arguments.json)


def _add_problems(commands: Any) -> None:
    from engine.cli.problems import add_arguments

    add_arguments(
        commands.add_parser("problems", help="check, compare and select problems of data sets")
    )


def _add_search(commands: Any) -> None:
    from engine.cli.search import add_search

    add_search(commands.add_parser("search", help="let a team answer one problem"))


def _add_evaluate(commands: Any) -> None:
    from engine.cli.evaluate import add_evaluate

    add_evaluate(commands.add_parser("evaluate", help="measure a team on a data set"))


def _add_compare(commands: Any) -> None:
    from engine.cli.evaluate import add_compare

    add_compare(
        commands.add_parser("compare", help="difference of two evaluations, with intervals")
    )


def _add_models(commands: Any) -> None:
    from engine.cli.models import add_arguments

    add_arguments(
        commands.add_parser("models", help="add a pretrained model, or convert a GGUF file")
    )


def _add_plugins(commands: Any) -> None:
    from engine.cli.plugins import add_arguments

    add_arguments(commands.add_parser("plugins", help="list the methods of other packages"))


def _add_reward_model(commands: Any) -> None:
    from engine.cli.reward_model import add_reward_model

    add_reward_model(
        commands.add_parser("reward-model", help="train a reward model on a run's programs")
    )


if __name__ == "__main__":
    sys.exit(main())
