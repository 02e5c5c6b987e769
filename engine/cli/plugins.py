"""`python -m engine plugins`: methods of other packages, with the version and folder of each.

The exit status is 0 if all can be used, 1 if one cannot: it is named with the reason, and left out
of every list of methods.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from engine.config.methods import REGISTRIES
from engine.config.plugins import PREFIX, Plugin, plugins


def add_arguments(command: Any) -> None:
    """Declares the arguments of `plugins`."""
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints every plug-in with its package, and what is wrong with it."""
    found = [{**_row(plugin), "error": error} for plugin, error in checked()]
    if arguments.json:
        print(json.dumps({"plugins": found}))
    else:
        for one in found:
            print(_line(one))
        if not found:
            print("no installed package adds a method")
    return 1 if any(one["error"] for one in found) else 0


def checked() -> Iterator[tuple[Plugin, str]]:
    """Yields every plug-in, by kind and name, with the reason why it cannot be used, or an empty
    string."""
    for one in sorted(REGISTRIES, key=lambda one: one.kind):
        yield from one.methods.checked()
    kinds = sorted(one.kind for one in REGISTRIES)
    for plugin in plugins():
        if plugin.kind not in kinds:
            groups = ", ".join(PREFIX + kind for kind in kinds)
            yield plugin, f"there is no group {PREFIX}{plugin.kind}; choose one of {groups}"


def _row(plugin: Plugin) -> dict[str, str]:
    names = ("kind", "name", "value", "package", "version", "folder")
    return {name: getattr(plugin, name) for name in names}


def _line(one: dict[str, str]) -> str:
    state = f"broken: {one['error']}" if one["error"] else "ok"
    origin = f"{one['package']} {one['version']} in {one['folder']}"
    return f"{one['kind']} {one['name']} = {one['value']}  {origin}  {state}"
