"""Replacement of Ray's program of this name, which a raylet runs before a worker that has a
`runtime_env`: it sets the environment and becomes the worker.

Ray's own imports all of Ray to read one argument, almost a second of CPU time for every actor;
the worker imports it again. Options that are unknown here are delegated to Ray's program.

Run by path as `python setup_worker.py WORKER.py ARGUMENTS... --language=PYTHON
--serialized-runtime-env-context=JSON`. Imports only the standard library.
"""

# ruff: noqa: PTH118, PTH119, PTH120
# pathlib takes as long to import as all the rest.

import json
import os
import re
import shlex
import sys

SUPPORTED = {"env_vars", "py_executable"}
"""Supported keys of a worker's context; all others must be empty."""


def main(arguments: list[str]) -> None:
    given = dict(a[2:].split("=", 1) for a in arguments if a.startswith("--") and "=" in a)
    context = json.loads(given.get("serialized-runtime-env-context", "{}"))
    unknown = any(value for name, value in context.items() if name not in SUPPORTED)
    if unknown or given.get("language") != "PYTHON" or not context.get("py_executable"):
        program = next(a for a in arguments if not a.startswith("-"))
        setup_program = os.path.join(os.path.dirname(program), os.path.basename(__file__))
        os.execv(sys.executable, [sys.executable, setup_program, *arguments])
    for name, value in context.get("env_vars", {}).items():
        os.environ[name] = expanded(value)
    consumed = ("--language=", "--serialized-runtime-env-context=")
    worker = [argument for argument in arguments if not argument.startswith(consumed)]
    command = [*shlex.split(context["py_executable"]), *worker]
    os.execvp(command[0], command)


def expanded(value: str) -> str:
    """Returns the value with variables expanded as Ray does: an unset one is empty."""
    return re.sub(r"\$\{[A-Z0-9_]+\}", "", os.path.expandvars(value))


if __name__ == "__main__":
    main(sys.argv[1:])
