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
from webapp.client import doctor, local, login, models, pushing
from webapp.client.client import Grove
from webapp.client.types import Event, Refused, Run

TABLES = ("runs", "metrics", "nodes", "evaluations")
FORMATS = ("csv", "jsonl", "parquet")
FILTERS = ("state", "q", "tag", "name")


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if target := local.handed_on(words):
        return local.hand_on(*target)
    asked = build_parser().parse_args(words)
    try:
        return asked.work(asked)
    except (Refused, login.NotLoggedIn, OSError, ValueError) as error:
        print(f"grove: {error}", file=sys.stderr)
        return 1
    except httpx.TransportError as error:
        print(f"grove: the server cannot be reached: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="grove", description="Grove on this machine, and runs of a Grove server."
    )
    parser.add_argument("--version", action="version", version=f"grove {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, work: Any, what: str) -> argparse.ArgumentParser:
        one = verbs.add_parser(name, help=what, description=what)
        one.set_defaults(work=work)
        return one

    for name, what in local.SERVER_VERBS.items():
        verbs.add_parser(name, help=f"{what} [server]")
    one = verb("doctor", _doctor, "check what is installed here; with a RECIPE, whether it fits")
    one.add_argument("--json", action="store_true", help="one JSON object, for machines")
    one = verb("login", _login, "keep address and token of a server; the token is asked for")
    one.add_argument("address", nargs="?", default=login.DEFAULT_ADDRESS)
    one = verb("runs", _runs, "list runs, newest first")
    for name in ("state", "name", "project"):
        one.add_argument(f"--{name}")
    one.add_argument("--limit", type=int, default=20, help="how many (default: 20)")
    one.add_argument("--json", action="store_true", help="one JSON object a line")
    one = verb("start", _start, "make a run from a recipe")
    one.add_argument("project", type=int)
    one.add_argument("recipe")
    one.add_argument("overrides", nargs="*", metavar="PATH=VALUE")
    one.add_argument("--name", default="")
    one.add_argument("--key", help="idempotency key: asked again, the same run")
    one = verb(
        "search", _search, "let a team answer one problem; with --agents on this machine [engine]"
    )
    one.add_argument("project", type=int)
    one.add_argument("problem", type=Path, help="JSON file of one problem with its tests")
    one.add_argument(
        "--team", nargs="+", required=True, metavar="MODEL",
        help="starter:NAME or registry:NAME@VERSION",
    )  # fmt: skip
    one.add_argument("--set", nargs="+", default=[], metavar="PATH=VALUE", dest="overrides")
    one.add_argument("--name", default="")
    one.add_argument("--key", help="idempotency key: asked again, the same search")
    one = verb("watch", _watch, "follow a run's events to its end")
    one.add_argument("run")
    one.add_argument("--after", type=int, default=0, metavar="SEQ")
    one.add_argument("--json", action="store_true", help="one event a line, as on the wire")
    for name, work, what in (
        ("stop", _stop, "ask a run to stop after a checkpoint"),
        ("resume", _resume, "let a stopped or failed run go on"),
    ):
        verb(name, work, what).add_argument("run")
    one = verb("pull", _pull, "write a run's events to a file, from where the file ends")
    one.add_argument("run")
    one.add_argument("file", type=Path)
    one = verb("export", _export, "write runs, metrics, nodes or evaluations to a file, as a table")
    one.add_argument("table", choices=TABLES)
    one.add_argument("file", type=Path, help=f"its ending says how: {', '.join(FORMATS)}")
    whose = one.add_mutually_exclusive_group(required=True)
    whose.add_argument("--project", type=int, help="all its runs, or those of the filters")
    whose.add_argument("--run")
    for name in FILTERS:
        one.add_argument(f"--{name}", help="as in the list of runs")
    one = verb("push", _push, "send the log of an engine that runs elsewhere")
    one.add_argument("directory", type=Path, help="the run's, with events.jsonl")
    one.add_argument("--run", help="of an earlier push; else --project and --recipe make one")
    one.add_argument("--project", type=int)
    one.add_argument("--recipe")
    one.add_argument("--follow", action="store_true", help="until the log tells the run's end")
    one = verb("push-dataset", _push_dataset, "upload files as a version of a dataset")
    one.add_argument("project", type=int)
    one.add_argument("name", help="of the dataset; one that is there gets a new version")
    one.add_argument("files", type=Path, nargs="+")
    one.add_argument("--note", default="")
    one = verb("pull-dataset", _pull_dataset, "write the problems of a version to a file")
    one.add_argument("version", type=int, help="its id, as push-dataset prints it")
    one.add_argument("file", type=Path)
    one = verb("push-model", _push_model, "upload a folder in Hugging Face layout as a version")
    one.add_argument("folder", type=Path)
    one.add_argument("--project", type=int, required=True)
    one.add_argument("--name", help="of the model (default: the folder's)")
    one.add_argument("--parent", type=int, help="number of the version that it came from")
    one = verb("pull-model", _pull_model, "write a version as a zip")
    one.add_argument("model", type=int)
    one.add_argument("number", type=int)
    one.add_argument("file", type=Path)
    for name, what in local.ENGINE_VERBS.items():
        verbs.add_parser(name, help=f"{what} [engine]")
    verbs.add_parser("engine", help="any verb of python -m engine: grove engine search --help")
    return parser


def _grove() -> Grove:
    return Grove(*login.known())


def _doctor(asked: argparse.Namespace) -> int:
    return doctor.examine(asked.json)


def _login(asked: argparse.Namespace) -> int:
    is_terminal = sys.stdin.isatty()
    token = getpass.getpass("API token: ") if is_terminal else sys.stdin.readline().strip()
    with Grove(asked.address, token) as grove:
        projects = [project.name for project in grove.projects()]
    where = login.save(asked.address, token)
    print(f"{asked.address}: {', '.join(projects) or 'no projects'}. Kept in {where}")
    return 0


def _runs(asked: argparse.Namespace) -> int:
    with _grove() as grove:
        filters = {"state": asked.state, "name": asked.name, "project": asked.project}
        found = grove.runs(**filters, limit=min(200, asked.limit))
        for _, run in zip(range(asked.limit), found, strict=False):
            print(_line(run) if not asked.json else msgspec.json.encode(run).decode())
    return 0


def _line(run: Run) -> str:
    return f"{run.id}  {run.state:9} {run.step:5}/{run.steps:<5} {run.name} #{run.number}"


def _start(asked: argparse.Namespace) -> int:
    overrides = dict(_override(text) for text in asked.overrides)
    with _grove() as grove:
        run = grove.create_run(asked.project, asked.recipe, overrides, asked.name, key=asked.key)
        print(run.id)
    return 0


def _search(asked: argparse.Namespace) -> int:
    """Returns exit status 0 if the answer passes all public tests, else 1."""
    problem = json.loads(asked.problem.read_text("utf-8"))
    overrides = dict(_override(text) for text in asked.overrides)
    with _grove() as grove:
        search = grove.create_search(
            asked.project, asked.team, problem, overrides, asked.name, key=asked.key
        )
        print(search.id, file=sys.stderr, flush=True)
        for _ in grove.watch(search.id, topics="run,search"):
            pass
        answer = grove.answer(search.id)
        error = grove.run(search.id).error
    if answer is None or answer.node is None:
        print(f"no answer{': ' + error if error else ''}", file=sys.stderr)
        return 1
    print(answer.program.rstrip())
    told = f"node {answer.node} by {answer.agent}: {answer.passed} of {answer.tests} public tests"
    print(told, file=sys.stderr)
    return 0 if answer.passed == answer.tests else 1


def _override(text: str) -> tuple[str, Any]:
    path, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text}: write PATH=VALUE")
    try:
        return path, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return path, value


def _watch(asked: argparse.Namespace) -> int:
    with _grove() as grove:
        for event in grove.watch(asked.run, asked.after, "*,-node.text"):
            print(msgspec.json.encode(event).decode() if asked.json else _told(event), flush=True)
        run = grove.run(asked.run)
    print(f"{run.state} at step {run.step}{': ' + run.error if run.error else ''}", file=sys.stderr)
    return 1 if run.state == "failed" else 0


def _told(event: Event) -> str:
    payload = json.dumps(event.payload, ensure_ascii=False)
    return f"{event.seq:8} {event.kind:16} {payload[:160]}"


def _stop(asked: argparse.Namespace) -> int:
    with _grove() as grove:
        print(_line(grove.stop(asked.run)))
    return 0


def _resume(asked: argparse.Namespace) -> int:
    with _grove() as grove:
        print(_line(grove.resume(asked.run)))
    return 0


def _pull(asked: argparse.Namespace) -> int:
    after = pushing.last_seq(asked.file)
    with _grove() as grove, asked.file.open("ab") as file:
        for event in grove.events(asked.run, after):
            file.write(msgspec.json.encode(event) + b"\n")
            after = event.seq
    print(f"{asked.file} holds the log up to {after}")
    return 0


def _export(asked: argparse.Namespace) -> int:
    ending = asked.file.suffix.removeprefix(".")
    if ending not in FORMATS:
        raise ValueError(f"{asked.file}: let it end in .{', .'.join(FORMATS)}")
    filters = {name: told for name in FILTERS if (told := getattr(asked, name))}
    with _grove() as grove:
        place = {"project": asked.project, "run": asked.run}
        queued = grove.ask_for_export(asked.table, ending, **place, **filters)
        export = grove.finished_export(queued.id)
        if export.state == "failed":
            raise ValueError(f"the export failed: {export.error}")
        grove.download(export, asked.file)
    print(f"{asked.file} holds {export.rows} rows")
    return 0


def _push(asked: argparse.Namespace) -> int:
    if not asked.run and not (asked.project and asked.recipe):
        raise ValueError("give --run, or --project and --recipe to make one")
    pushing.log_in(asked.directory)  # a run without a log would wait forever
    with _grove() as grove:
        run_id = asked.run or grove.create_run(asked.project, asked.recipe, outside=True).id
        print(run_id, flush=True)
        heard = pushing.push(grove, run_id, asked.directory, follow=asked.follow)
    print(f"{heard.state}, stored up to {heard.head_seq}", file=sys.stderr)
    return 0


def _push_dataset(asked: argparse.Namespace) -> int:
    with _grove() as grove:
        version = grove.add_dataset(asked.project, asked.name, asked.files, asked.note)
    print(version.id)
    for text in version.left_out:
        print(f"left out: {text}", file=sys.stderr)
    print(f"{version.reference}: {version.statistics['problems']} problems", file=sys.stderr)
    return 0


def _pull_dataset(asked: argparse.Namespace) -> int:
    draft = asked.file.with_name(f"{asked.file.name}.partial")
    try:
        with _grove() as grove, draft.open("wb") as file:
            for block in grove.dataset_content(asked.version):
                file.write(block)
        draft.replace(asked.file)
    finally:
        draft.unlink(missing_ok=True)
    return 0


def _push_model(asked: argparse.Namespace) -> int:
    name = asked.name or asked.folder.resolve().name
    with _grove() as grove:
        made = models.push_model(grove, asked.project, name, asked.folder, asked.parent)
    print(f"{name} v{made.number} {made.sha256}")
    return 0


def _pull_model(asked: argparse.Namespace) -> int:
    with _grove() as grove:
        size = models.pull_model(grove, asked.model, asked.number, asked.file)
    print(f"{asked.file}: {size} bytes")
    return 0
