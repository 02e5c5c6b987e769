"""The pages of commands, from their argparse parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module

from docs.generate import markdown
from docs.generate.markdown import code, paragraphs, sentence, table

HEAD = ("argument", "values", "default", "meaning")
OF_DJANGO = {
    "help", "version", "settings", "pythonpath", "traceback", "no_color", "force_color",
    "skip_checks", "verbosity",
}  # fmt: skip


def engine_page() -> str:
    from engine.__main__ import build_parser

    about = "The trainer without the web side. A tour: [The engine alone](../guides/engine.md)."
    return markdown.page("Engine commands", about, *_commands(build_parser(), "python -m engine"))


def grove_page() -> str:
    from webapp.client.cli import build_parser

    about = (
        "The command over REST. A tour: [Programs](../guides/rest.md). Exit status: 0 done; 1 the "
        "server refused, or the run that was watched failed; 2 a wrong command line, or an extra "
        "that is not installed; 3 the server cannot be reached. \\[server\\] and \\[engine\\] name "
        "the extra of `grove-rl` that a verb needs."
    )
    return markdown.page("The grove command", about, *_commands(build_parser(), "grove"))


def manage_page() -> str:
    from django.core.management import get_commands

    ours = {name: app for name, app in get_commands().items() if _is_ours(app)}
    about = (
        "Commands of `.venv/bin/python manage.py` that are Grove's own; Django's are there, too."
    )
    return markdown.page("manage.py", about, *_managed(ours))


def _is_ours(app: str) -> bool:
    return app.startswith(("webapp", "workers"))


def _managed(ours: dict[str, str]) -> Iterator[str]:
    for name, app in sorted(ours.items()):
        command = import_module(f"{app}.management.commands.{name}").Command()
        parser = command.create_parser("manage.py", name)
        yield f"## {name}"
        yield sentence(command.help)
        yield table(HEAD, _rows(parser, OF_DJANGO))


def _commands(parser: argparse.ArgumentParser, program: str, level: int = 2) -> Iterator[str]:
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        helps = {one.dest: one.help for one in action._choices_actions}
        for name, command in action.choices.items():
            yield f"{'#' * level} {program.split(' ')[-1]} {name}"
            yield sentence(helps.get(name))
            if command.description and command.description != helps.get(name):
                yield paragraphs(command.description)
            yield table(HEAD, _rows(command, {"help"}))
            yield from _commands(command, f"{program} {name}", level + 1)


def _rows(parser: argparse.ArgumentParser, left_out: set[str]) -> Iterator[tuple[str, ...]]:
    for action in parser._actions:
        is_nested = isinstance(action, argparse._SubParsersAction)
        if action.dest in left_out or is_nested or action.help == argparse.SUPPRESS:
            continue
        yield _name(action), _values(action), _default(action), sentence(_help(action))


def _name(action: argparse.Action) -> str:
    if action.option_strings:
        return ", ".join(map(code, action.option_strings))
    name = action.metavar or action.dest
    return code(f"[{name}]" if action.nargs in ("?", "*") else name)


def _values(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if action.choices:
        return ", ".join(map(code, action.choices))
    word = action.metavar if isinstance(action.metavar, str) else ""
    kind = word if action.option_strings and word else getattr(action.type, "__name__", "text")
    kind = {"str": "text", "Path": "path", "int": "whole number", "float": "number"}.get(kind, kind)
    return f"{kind.lstrip('_')}{', several' if action.nargs in ('*', '+') else ''}"


def _default(action: argparse.Action) -> str:
    if action.required and action.nargs != "*":
        return "required"
    if not action.default or action.default is argparse.SUPPRESS or action.nargs == 0:
        return ""
    return code(action.default)


def _help(action: argparse.Action) -> str:
    text = action.help or ""
    return text % {**vars(action), "prog": ""} if "%(" in text else text.replace("%%", "%")
