"""The `grove` command: Grove on this machine, and runs, datasets, models and exports of a server.

Exit status: 0 success; 1 the server refused, or the watched run failed; 2 a wrong command line, or
a verb whose extra is not installed; 3 the server is unreachable. A verb of `webapp.client.local`
ends with the status of the process that it executes.
"""

from __future__ import annotations

import argparse
import getpass
import json
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import msgspec

from webapp import __version__
from webapp.client import deletion, doctor, hub, local, login, models, pushing
from webapp.client.client import Grove
from webapp.client.encoding import escape_what_cannot_be_encoded, for_terminal
from webapp.client.extras import NotInstalled
from webapp.client.imports import verbs as imports
from webapp.client.mirrors import copying
from webapp.client.tracking import InitRefused, sync
from webapp.client.tracking.sender import Undelivered
from webapp.client.types import Event, ModelImport, Refused, Run, Waiting
from webapp.client.whole_files import whole_file

TABLES = ("runs", "metrics", "nodes", "evaluations", "logged")
FORMATS = ("csv", "jsonl", "parquet")
FILTERS = ("state", "q", "tag", "name")


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    escape_what_cannot_be_encoded()
    if target := local.local_verb(words):
        return local.execute(*target)
    options = build_parser().parse_args(words)
    try:
        return options.handler(options)
    except (
        Refused, login.NotLoggedIn, models.ImportFailed, InitRefused, Undelivered, OSError,
        ValueError,
    ) as error:  # fmt: skip
        print(f"grove: {_printable(str(error))}", file=sys.stderr)
        return 1
    except NotInstalled as error:
        print(f"grove: {error}", file=sys.stderr)
        return local.NOT_INSTALLED
    except httpx.TransportError as error:
        print(f"grove: the server cannot be reached: {_printable(str(error))}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130


class _Verbs:
    """Subcommands of `grove`; each has the function that runs it as `handler`."""

    def __init__(self, parser: argparse.ArgumentParser):
        self._parsers = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def add(self, name: str, handler: Any, help_text: str) -> argparse.ArgumentParser:
        command = self._parsers.add_parser(name, help=help_text, description=help_text)
        command.set_defaults(handler=handler)
        return command

    def add_foreign(self, name: str, help_text: str) -> None:
        """A verb that another program parses; listed here for `grove --help`."""
        self._parsers.add_parser(name, help=help_text)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="grove", description="Grove on this machine, and runs of a Grove server."
    )
    parser.add_argument("--version", action="version", version=f"grove {__version__}")
    verbs = _Verbs(parser)
    for name, help_text in local.SERVER_VERBS.items():
        verbs.add_foreign(name, f"{help_text} [server]")
    _add_setup(verbs)
    _add_runs(verbs)
    deletion.add_verbs(verbs.add)
    _add_logs(verbs)
    imports.add_verbs(verbs.add)
    copying.add_verbs(verbs.add)
    _add_datasets(verbs)
    _add_models(verbs)
    _add_hub(verbs)
    for name, help_text in local.ENGINE_VERBS.items():
        verbs.add_foreign(name, f"{help_text} [engine]")
    verbs.add_foreign("engine", "any verb of python -m engine: grove engine search --help")
    return parser


_OUTPUT = "written, or through a FIFO or a device; - for stdout"


def _path(text: str) -> Path:
    return Path("/dev/stdout" if text == "-" else text)


def _print_about(file: Path, text: str) -> None:
    """Prints about a file that was written; to stderr if stdout may be that file."""
    print(text, file=sys.stdout if file.is_file() and file.parent.name != "dev" else sys.stderr)


def _add_setup(verbs: _Verbs) -> None:
    command = verbs.add(
        "doctor", _doctor, "check what is installed here; with a RECIPE, whether it fits"
    )
    command.add_argument("--json", action="store_true", help="one JSON object, for machines")
    command = verbs.add(
        "login", _login, "store address and token of a server; prompts for the token"
    )
    command.add_argument("address", nargs="?", default=login.DEFAULT_ADDRESS)


def _add_runs(verbs: _Verbs) -> None:
    command = verbs.add("runs", _runs, "list runs, newest first")
    for name in ("state", "name", "project"):
        command.add_argument(f"--{name}")
    command.add_argument("--limit", type=int, default=20, help="how many (default: 20)")
    command.add_argument("--json", action="store_true", help="one JSON object a line")
    command = verbs.add("start", _start, "create a run from a recipe")
    command.add_argument("project", type=int)
    command.add_argument("recipe")
    command.add_argument("overrides", nargs="*", metavar="PATH=VALUE")
    command.add_argument("--name", default="")
    command.add_argument("--key", help="idempotency key: a repeated command returns the same run")
    command = verbs.add(
        "search",
        _search,
        "search with a team on one problem; with --agents on this machine [engine]",
    )
    command.add_argument("project", type=int)
    command.add_argument("problem", type=Path, help="JSON file of one problem with its tests")
    command.add_argument(
        "--team", nargs="+", required=True, metavar="MODEL",
        help="starter:NAME, registry:NAME@VERSION or package:NAME",
    )  # fmt: skip
    command.add_argument("--set", nargs="+", default=[], metavar="PATH=VALUE", dest="overrides")
    command.add_argument("--name", default="")
    command.add_argument(
        "--key", help="idempotency key: a repeated command returns the same search"
    )
    command = verbs.add("watch", _watch, "follow a run's events to its end")
    command.add_argument("run")
    command.add_argument("--after", type=int, default=0, metavar="SEQ")
    command.add_argument("--json", action="store_true", help="one event a line, as on the wire")
    for name, handler, help_text in (
        ("stop", _stop, "stop a run after a checkpoint"),
        ("resume", _resume, "resume a stopped or failed run"),
    ):
        verbs.add(name, handler, help_text).add_argument("run")


def _add_logs(verbs: _Verbs) -> None:
    command = verbs.add("pull", _pull, "write a run's events to a file, from where the file ends")
    command.add_argument("run")
    command.add_argument("file", type=_path, help=_OUTPUT)
    command = verbs.add(
        "export",
        _export,
        "write runs, metrics, nodes, evaluations or logged values to a file, as a table",
    )
    command.add_argument("table", choices=TABLES)
    command.add_argument(
        "file", type=Path, help=f"its suffix selects the format: {', '.join(FORMATS)}"
    )
    scope = command.add_mutually_exclusive_group(required=True)
    scope.add_argument("--project", type=int, help="all its runs, or those of the filters")
    scope.add_argument("--run")
    for name in FILTERS:
        command.add_argument(f"--{name}", help="as in the list of runs")
    command = verbs.add("sync", _sync, "send runs that were logged offline, or cut off")
    command.add_argument("directory", type=Path, help="of spools, as grove.init(dir=...)")
    command = verbs.add("push", _push, "send the log of an engine that runs elsewhere")
    command.add_argument("directory", type=Path, help="the run's, with events.jsonl")
    command.add_argument("--run", help="of an earlier push; else --project and --recipe create one")
    command.add_argument("--project", type=int)
    command.add_argument("--recipe")
    command.add_argument(
        "--follow", action="store_true", help="until the log records the run's end"
    )


def _add_datasets(verbs: _Verbs) -> None:
    command = verbs.add("push-dataset", _push_dataset, "upload files as a version of a dataset")
    command.add_argument("project", type=int)
    command.add_argument("name", help="of the dataset; an existing one gets a new version")
    command.add_argument("files", type=Path, nargs="+")
    command.add_argument("--note", default="")
    command = verbs.add("pull-dataset", _pull_dataset, "write the problems of a version to a file")
    command.add_argument("version", type=int, help="its id, as push-dataset prints it")
    command.add_argument("file", type=_path, help=_OUTPUT)


def _add_models(verbs: _Verbs) -> None:
    command = verbs.add(
        "push-model",
        _push_model,
        "upload a folder in Hugging Face layout, or a GGUF file, as a version",
    )
    command.add_argument("source", type=Path, metavar="FOLDER|FILE.gguf")
    command.add_argument("--project", type=int, required=True)
    command.add_argument("--name", help="of the model (default: the folder's or the file's)")
    command.add_argument("--parent", type=int, help="number of the version that it was made from")
    command = verbs.add("pull-model", _pull_model, "write a version as a zip")
    command.add_argument("model", type=int)
    command.add_argument("number", type=int)
    command.add_argument("file", type=_path, help=_OUTPUT)


def _add_hub(verbs: _Verbs) -> None:
    for name, handler, what, numbers in (
        ("push-hub", _push_hub, "a model's version with its card", ("model", "number")),
        (
            "push-hub-dataset",
            _push_hub_dataset,
            "all problems of a dataset's version",
            ("version",),
        ),
    ):
        command = verbs.add(name, handler, f"commit {what} to a Hugging Face hub (GROVE_HUB) [hub]")
        for number in numbers:
            command.add_argument(number, type=int)
        command.add_argument("repository", metavar="ORG/NAME", help="created if missing")
        command.add_argument("--public", action="store_true", help="for everyone to read")


def _grove() -> Grove:
    grove = Grove(*login.credentials())
    grove.on_waiting = _show_place
    return grove


def _show_place(place: Waiting) -> None:
    print(f"waiting: place {place.place} of {place.waiting} in the queue", file=sys.stderr)


def _doctor(options: argparse.Namespace) -> int:
    return doctor.examine(options.json)


def _login(options: argparse.Namespace) -> int:
    is_terminal = sys.stdin.isatty()
    token = getpass.getpass("API token: ") if is_terminal else sys.stdin.readline().strip()
    with Grove(options.address, token) as grove:
        projects = [project.name for project in grove.projects()]
    path = login.save(options.address, token)
    print(f"{options.address}: {', '.join(projects) or 'no projects'}. Stored in {path}")
    return 0


def _runs(options: argparse.Namespace) -> int:
    with _grove() as grove:
        filters = {"state": options.state, "name": options.name, "project": options.project}
        matching = grove.runs(**filters, limit=min(200, options.limit))
        for _, run in zip(range(options.limit), matching, strict=False):
            print(_line(run) if not options.json else msgspec.json.encode(run).decode())
    return 0


def _line(run: Run) -> str:
    name = _printable(run.name)
    return f"{run.id}  {run.state:9} {run.step:5}/{run.steps:<5} {name} #{run.number}"


def _printable(text: str) -> str:
    """Returns a text of other people as one line that steers no terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _start(options: argparse.Namespace) -> int:
    overrides = dict(_override(text) for text in options.overrides)
    with _grove() as grove:
        run = grove.create_run(
            options.project, options.recipe, overrides, options.name, key=options.key
        )
        print(run.id)
    return 0


def _search(options: argparse.Namespace) -> int:
    """Returns exit status 0 if the answer passes all public tests, else 1."""
    problem = json.loads(options.problem.read_text("utf-8"))
    overrides = dict(_override(text) for text in options.overrides)
    with _grove() as grove:
        search = grove.create_search(
            options.project, options.team, problem, overrides, options.name, key=options.key
        )
        print(search.id, file=sys.stderr, flush=True)
        for _ in grove.watch(search.id, topics="run,search"):
            pass
        answer = grove.answer(search.id)
        error = grove.run(search.id).error
    if answer is None or answer.node is None:
        print(f"no answer{': ' + _printable(error) if error else ''}", file=sys.stderr)
        return 1
    print(for_terminal(answer.program.rstrip()))
    summary = (
        f"node {answer.node} by {answer.agent}: {answer.passed} of {answer.tests} public tests"
    )
    print(summary, file=sys.stderr)
    return 0 if answer.passed == answer.tests else 1


def _override(text: str) -> tuple[str, Any]:
    path, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text}: write PATH=VALUE")
    try:
        return path, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return path, value


def _watch(options: argparse.Namespace) -> int:
    with _grove() as grove:
        for event in grove.watch(options.run, options.after, "*,-node.text"):
            print(
                msgspec.json.encode(event).decode() if options.json else _format_event(event),
                flush=True,
            )
        run = grove.run(options.run)
    print(
        f"{run.state} at step {run.step}{': ' + _printable(run.error) if run.error else ''}",
        file=sys.stderr,
    )
    return 1 if run.state == "failed" else 0


def _format_event(event: Event) -> str:
    payload = json.dumps(event.payload, ensure_ascii=False)
    return f"{event.seq:8} {event.kind:16} {_printable(payload[:160])}"


def _stop(options: argparse.Namespace) -> int:
    with _grove() as grove:
        print(_line(grove.stop(options.run)))
    return 0


def _resume(options: argparse.Namespace) -> int:
    with _grove() as grove:
        print(_line(grove.resume(options.run)))
    return 0


def _pull(options: argparse.Namespace) -> int:
    after = pushing.last_seq(options.file)
    with _grove() as grove, options.file.open("ab") as file:
        for event in grove.events(options.run, after):
            file.write(msgspec.json.encode(event) + b"\n")
            after = event.seq
    _print_about(options.file, f"{options.file} contains the log up to {after}")
    return 0


def _export(options: argparse.Namespace) -> int:
    file_format = options.file.suffix.removeprefix(".")
    if file_format not in FORMATS:
        raise ValueError(f"{options.file}: give a file name that ends in .{', .'.join(FORMATS)}")
    filters = {name: value for name in FILTERS if (value := getattr(options, name))}
    with _grove() as grove:
        scope = {"project": options.project, "run": options.run}
        queued = grove.ask_for_export(options.table, file_format, **scope, **filters)
        export = grove.finished_export(queued.id)
        if export.state == "failed":
            raise ValueError(f"the export failed: {export.error}")
        grove.download(export, options.file)
    _print_about(options.file, f"{options.file} contains {export.rows} rows")
    return 0


def _sync(options: argparse.Namespace) -> int:
    with _grove() as grove:
        failed = sync.sync(grove, options.directory)
    for text in failed:
        print(f"grove: {_printable(text)}", file=sys.stderr)
    return 1 if failed else 0


def _push(options: argparse.Namespace) -> int:
    if not options.run and not (options.project and options.recipe):
        raise ValueError("give --run, or --project and --recipe to create one")
    pushing.log_path(options.directory)  # a run without a log would wait forever
    with _grove() as grove:
        run_id = options.run or grove.create_run(options.project, options.recipe, outside=True).id
        print(run_id, flush=True)
        status = pushing.push(grove, run_id, options.directory, follow=options.follow)
    print(f"{status.state}, stored up to {status.head_seq}", file=sys.stderr)
    return 0


def _push_dataset(options: argparse.Namespace) -> int:
    with _grove() as grove:
        version = grove.add_dataset(options.project, options.name, options.files, options.note)
    print(version.id)
    for text in version.left_out:
        print(f"left out: {_printable(text)}", file=sys.stderr)
    print(f"{version.reference}: {version.statistics['problems']} problems", file=sys.stderr)
    return 0


def _pull_dataset(options: argparse.Namespace) -> int:
    with _grove() as grove, whole_file(options.file) as file:
        for block in grove.dataset_content(options.version):
            file.write(block)
    return 0


def _push_model(options: argparse.Namespace) -> int:
    source = options.source.resolve()
    if source.is_file() and source.suffix.lower() == models.GGUF:
        return _push_gguf(options, source)
    name = options.name or source.name
    with _grove() as grove:
        made = models.push_model(
            grove, options.project, name, source, options.parent, _print_left_out
        )
    for line in made.warnings:
        print(f"warning: {_printable(line)}", file=sys.stderr)
    print(f"{name} v{made.number} {made.sha256}")
    return 0


def _print_left_out(name: str, why: str) -> None:
    print(f"left out: {ascii(name)[1:-1]}: {why}", file=sys.stderr)


def _push_gguf(options: argparse.Namespace, file: Path) -> int:
    if options.parent is not None:
        raise ValueError(f"--parent {options.parent}: a GGUF file has no parent; leave it out")
    name = options.name or file.stem
    shown = ""

    def show(one: ModelImport) -> None:
        nonlocal shown
        text = _printable(f"{one.state} {one.progress:.0%} {one.phase}".strip())
        if text != shown:
            print(text, file=sys.stderr, flush=True)
        shown = text

    with _grove() as grove:
        made = models.push_gguf(grove, options.project, name, file, show)
    print(f"{name} v{made.number} {made.sha256}")
    return 0


def _pull_model(options: argparse.Namespace) -> int:
    with _grove() as grove:
        size = models.pull_model(grove, options.model, options.number, options.file)
    _print_about(options.file, f"{options.file}: {size} bytes")
    return 0


def _push_hub(options: argparse.Namespace) -> int:
    with _grove() as grove:
        print(
            hub.push_model(grove, options.model, options.number, options.repository, options.public)
        )
    return 0


def _push_hub_dataset(options: argparse.Namespace) -> int:
    with _grove() as grove:
        print(hub.push_dataset(grove, options.version, options.repository, options.public))
    return 0
