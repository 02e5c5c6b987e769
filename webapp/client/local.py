"""Verbs of `grove` that run on this machine: the engine's, and Django's commands.

Each replaces this process with `python -m engine` or `python -m webapp.manage`, so signals, output
and exit status are theirs. Neither is imported here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from webapp.client.requirements import unmet

ENGINE_VERBS = {
    "train": "train, or resume, the run of a directory",
    "prepare": "write RUN_DIR/config.json from a recipe",
    "fork": "prepare a run that starts at a checkpoint",
    "config": "print the JSON schema of all settings",
    "starters": "create the two starter policies from a seed",
    "golden": "run worked numbers through the training functions",
    "problems": "check and compare data sets",
    "evaluate": "measure a team on a data set",
    "compare": "difference of two evaluations, with intervals",
    "reward-model": "train a judge of a run's programs",
    "models": "add a pretrained model, or convert a GGUF file",
    "same": "whether two runs are the same, bit for bit",
    "plugins": "list the methods of other packages",
}
"""Verbs of `python -m engine` under the same name. Its `search` and `doctor` share a name with a
verb of the client: `local_verb` distinguishes them."""
SERVER_VERBS = {
    "up": "start Postgres, web and worker on this machine, until Ctrl-C",
    "demo": "run the demo job through the whole stack",
    "backup": "write this installation to one file, while it runs",
    "restore": "restore a backup into an empty installation",
    "import-workspace": "import the zip of a workspace's export, whole or not at all",
    "upgrade": "migrate the database to this version; --check says what would change",
    "manage": "run a command of Django, for example: grove manage sign_in_link",
}
_LOCAL_SEARCH = ("--agents", "--problem", "--run-dir")
ENGINE, SERVER = "engine", "webapp.manage"
_EXTRAS = {ENGINE: "engine", SERVER: "server"}
NOT_INSTALLED = 2
"""Exit status of a verb whose extra is not installed."""


def local_verb(words: Sequence[str]) -> tuple[str, list[str]] | None:
    """Returns (module, its arguments) of a command line of a local verb; None for the client's."""
    if not words:
        return None
    verb, rest = words[0], list(words[1:])
    if verb == "manage":
        return SERVER, rest
    if verb in SERVER_VERBS:
        return SERVER, [verb.replace("-", "_"), *rest]
    if verb == "engine":
        return ENGINE, rest
    if verb in ENGINE_VERBS or (verb == "search" and _is_local(rest)):
        return ENGINE, [verb, *rest]
    if verb == "doctor" and rest and not rest[0].startswith("-"):  # of a recipe
        return ENGINE, [verb, *rest]
    return None


def _is_local(arguments: Sequence[str]) -> bool:
    """Returns whether a search names its own agents and so needs no server."""
    return any(word.partition("=")[0] in _LOCAL_SEARCH for word in arguments)


def execute(module: str, arguments: Sequence[str]) -> int:
    """Replaces this process with `python -m MODULE ARGUMENTS`; returns `NOT_INSTALLED` if the extra
    of the module is not installed."""
    extra = _EXTRAS[module]
    if missing := [one.requirement for one in unmet(extra) if one.installed is None]:
        shown = ", ".join(missing[:3]) + (" ..." if len(missing) > 3 else "")
        sentence = f"not installed: {shown}. Run: pip install 'grove-rl[{extra}]'"
        print(f"grove: {sentence}", file=sys.stderr)
        return NOT_INSTALLED
    sys.stdout.flush()
    os.execv(sys.executable, command(module, arguments))  # nosec B606


def command(module: str, arguments: Sequence[str]) -> list[str]:
    """Returns the command line of a module of Grove; nothing is imported from the current
    directory."""
    return [sys.executable, "-P", "-m", module, *arguments]
