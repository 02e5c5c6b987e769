"""python -m benchmarks NAME --json

The last line of output is {"name", "ratios", "figures", "versions"} as JSON; `all` measures
everything, each in a process of its own, and writes the page of the docs; `claims` tests the
scientific claims. Exit status: 0, or 1 if a measurement (or a cell of a claim) failed, 2 for wrong
arguments, 3 if a peer is not installed, and of `all` 4 if everything was measured and a goal was
missed; 130 if it was interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from types import ModuleType

from benchmarks import COMMANDS, PeerMissing, WrongArguments
from benchmarks.record import NotWritten

GOAL_MISSED, INTERRUPTED = 4, 130


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    modules = _modules(argv[:1])
    arguments = _parser(modules).parse_args(argv)
    try:
        measured = modules[arguments.name].measure(arguments)
    except PeerMissing as missing:
        print(f"{arguments.name}: {missing}", file=sys.stderr)
        return 3
    except WrongArguments as error:
        print(f"{arguments.name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{arguments.name}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except NotWritten as changed:
        print(f"{arguments.name}: {changed}", file=sys.stderr)
        return 1
    if not arguments.json:
        for kind in ("ratios", "figures", "versions"):
            for key, value in measured[kind].items():
                print(f"{kind[:-1]:8} {key:32} {value}")
    print(json.dumps({"name": arguments.name, **measured}))
    if "failed" in measured["figures"]:
        return 1
    return GOAL_MISSED if arguments.name == "all" and "missed" in measured["figures"] else 0


def _modules(requested: list[str]) -> dict[str, ModuleType]:
    """Returns the requested module; all of them for help, or for an unknown name."""
    selected = [name for name in COMMANDS if name in requested] or list(COMMANDS)
    return {name: importlib.import_module(f"benchmarks.{COMMANDS[name]}") for name in selected}


def _parser(modules: dict[str, ModuleType]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Side-by-side measurements against peers."
    )
    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, module in modules.items():
        one = names.add_parser(
            name,
            help=module.SUMMARY,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        one.add_argument("--json", action="store_true", help="print only the JSON line")
        module.add_arguments(one)
    return parser


if __name__ == "__main__":
    sys.exit(main())
