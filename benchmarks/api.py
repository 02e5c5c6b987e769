"""REST with 10,000 runs, of which the busiest has 1,000 metrics, and against MLflow and Trackio.

`max_queries` is the most database queries of any of these: a page of 50 runs, the same filtered by
state and name, a run opened by REST and as a page, its 1,000 metrics, one of them in buckets.
`list_p95_ms` is the 95th percentile of pages of 50 runs over HTTP, fetched by cursor.

Against the peers, on the same machine with the same numbers: listing 1,000 runs; logging 100,000
scalars (1,000 steps of 100); reading all points of a series of 100,000, each with step, time and
value. Grove and Trackio log in turns, after one uncounted turn of each; the ratio is the median of
the rounds. Grove and MLflow are called over HTTP on this machine (Grove on Postgres, MLflow on its
sqlite), each over one connection of its own client and in that client's batches; Trackio reads and
writes its file in its own process, without a network. The clock of logging stops when the numbers
are stored: with Postgres after the commit of the last batch, for which its log is flushed
(`synchronous_commit` is on). All must read the same number of points with the same sum. The peers'
pins differ from Grove's, so they have an environment of their own, `var/peers`, created once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import PeerMissing, at_least, at_most
from benchmarks.api_peers import await_answer, free_port, timed, value

SUMMARY = "REST with 10,000 runs, and listing, logging and reading against MLflow and Trackio"
GOALS = {
    "max_queries": at_most(20),
    "list_p95_ms": at_most(100),
    "list_1000_runs_vs_mlflow": at_least(1),
    "log_100k_scalars_vs_mlflow": at_least(1),
    "log_100k_scalars_vs_trackio": at_least(1),
    "read_100k_series_vs_mlflow": at_least(1),
    "read_100k_series_vs_trackio": at_least(1),
}
ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / "var" / "peers"
PINS = ("mlflow==3.17.2", "trackio==0.43.0", "wandb==0.31.0")
PAGES = 60
_FIXED = ("seconds", "nodes", "filtered_trees", "dropped_nodes", "tokens", "training_seconds",
          "refilled_trees", "carried_trees", "reward", "solved")  # fmt: skip
"""Numbers that every step reports besides its phases."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--metrics", type=int, default=1000, help="of the busiest run")
    parser.add_argument("--listed", type=int, default=1000, help="runs listed against MLflow")
    parser.add_argument("--steps", type=int, default=1000, help="of 100 scalars each")
    parser.add_argument("--log-rounds", type=int, default=7, help="turns of logging with Trackio")
    parser.add_argument("--points", type=int, default=100_000, help="of the series that is read")
    parser.add_argument("--without-peers", action="store_true", help="measure Grove alone")


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Returns ratios and figures of all; the peers run first, so that a missing one fails early."""
    load = (arguments.listed, arguments.steps, 100, arguments.points)
    python = None if arguments.without_peers else peers_python()
    with tempfile.TemporaryDirectory(prefix="grove-bench-") as folder:
        peers = {name: _peer_result(python, name, folder, load) for name in ("mlflow", "trackio")
                 if python}  # fmt: skip
        with _site(Path(folder)) as address, _trackio(python, folder, load) as log_in_trackio:
            ours = _ours(address, arguments, log_in_trackio)
    if theirs := ours.pop("trackio_log"):
        peers["trackio"] |= {"log": theirs, "log_ratio": ours["log_ratio"]}
    return _results(ours, peers)


def _results(ours: dict[str, Any], peers: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    ratios = {name: ours[name] for name in ("max_queries", "list_p95_ms")}
    names = {"list": "list_1000_runs", "log": "log_100k_scalars", "read": "read_100k_series"}
    figures = {f"grove_{work}_seconds": round(ours[work], 3) for work in names}
    for peer, result in peers.items():
        assert abs(result["sum"] - ours["sum"]) < 1e-3, f"{peer} read other numbers"
        for work in names.keys() & result.keys():
            ratio = result.get(f"{work}_ratio", result[work] / ours[work])
            ratios[f"{names[work]}_vs_{peer}"] = round(ratio, 2)
            figures[f"{peer}_{work}_seconds"] = round(result[work], 3)
    figures |= {
        name: ours[name]
        for name in ("queries", "max_queries", "list_p95_ms", "list_median_ms", "made_seconds")
    }
    versions = {name: result["version"] for name, result in peers.items()}
    return {"ratios": ratios, "figures": figures, "versions": versions}


def peers_python() -> Path:
    """Returns the Python that has the peers of logging, which are installed on first use.

    Raises:
        PeerMissing: they cannot be installed here.
    """
    python, stamp = PEERS / "bin" / "python", PEERS / "pins.txt"
    if stamp.is_file() and stamp.read_text() == "\n".join(PINS):
        return python
    try:
        subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
        install = [str(python), "-m", "pip", "install", "-q", *PINS]
        subprocess.run(install, check=True, stdout=sys.stderr)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PeerMissing(f"{' and '.join(PINS)} cannot be installed: {error}") from None
    stamp.write_text("\n".join(PINS))
    return python


def _peer_result(python: Path, name: str, folder: str, load: tuple[int, ...]) -> dict[str, Any]:
    directory = Path(folder) / name
    directory.mkdir()
    script = str(ROOT / "benchmarks" / "api_peers.py")
    command = [str(python), script, name, str(directory), *map(str, load)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, cwd=directory)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip()[-800:]}")
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def _trackio(
    python: Path | None, folder: str, load: tuple[int, ...]
) -> Iterator[Callable[[int], float] | None]:
    """Yields a function that makes Trackio log run `number` and returns the seconds; None without
    peers."""
    if python is None:
        yield None
        return
    directory = Path(folder) / "trackio_log"
    directory.mkdir()
    script = str(ROOT / "benchmarks" / "api_peers.py")
    command = [str(python), script, "trackio_log", str(directory), *map(str, load)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=directory
    ) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin and stdout

        def logged(number: int) -> float:
            print(f"wide{number}", file=stdin, flush=True)
            if not (answer := stdout.readline()):
                raise RuntimeError(f"trackio: it ended with {process.wait()}")
            return float(answer)

        yield logged
        stdin.close()


@contextmanager
def _site(folder: Path) -> Iterator[str]:
    """Runs Postgres and the web server, as `make run` starts them; this process may use the
    database."""
    from workers.local.postgres import EmbeddedPostgres
    from workers.local.service_commands import web_command

    postgres = EmbeddedPostgres(folder / "postgres")
    os.environ["DATABASE_URL"] = postgres.start()
    os.environ["GROVE_VAR"] = str(folder)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
    import django
    from django.core.management import call_command
    from django.db import connection

    django.setup()
    call_command("migrate", verbosity=0)
    port = free_port()
    server = subprocess.Popen(web_command(port), cwd=ROOT)
    try:
        address = f"http://127.0.0.1:{port}"
        await_answer(f"{address}/healthz")
        yield address
    finally:
        server.terminate()
        server.wait(30)
        connection.close()
        postgres.stop()


def _ours(
    address: str,
    arguments: argparse.Namespace,
    log_in_trackio: Callable[[int], float] | None,
) -> dict[str, Any]:
    from benchmarks.api_scene import make_scene
    from webapp.client import Grove

    made, scene = timed(lambda: make_scene(arguments.runs, arguments.listed))
    result: dict[str, Any] = {"made_seconds": round(made, 1)}
    with Grove(address, scene.token, timeout=120) as grove:
        busiest = grove.create_run(scene.project, "mars2", outside=True).id
        grove.send(busiest, [_step(1, arguments.metrics)])
        result |= scene.queries(busiest)
        pages = [timed(page)[0] for page in _pages(grove)]
        result["list_p95_ms"] = round(1000 * statistics.quantiles(pages, n=20)[18], 1)
        result["list_median_ms"] = round(1000 * statistics.median(pages), 1)
        listing = {"project": scene.listed_project, "limit": 200}
        result["list"], listed_runs = timed(lambda: list(grove.runs(**listing)))
        assert len(listed_runs) == arguments.listed
        result |= _logged(grove, scene.project, arguments, log_in_trackio)
        result["read"], result["sum"] = _read(grove, scene.project, arguments.points)
    return result


def _pages(grove: Any) -> Iterator[Callable[[], Any]]:
    cursor: list[str | None] = [None]

    def page() -> None:
        query = {"limit": 50, **({"cursor": cursor[0]} if cursor[0] else {})}
        cursor[0] = grove.ask(dict[str, Any], "GET", "/runs", params=query)["next"]

    return (page for _ in range(PAGES))


def _log(grove: Any, project: int, steps: int) -> None:
    from webapp.client.pushing import batches

    run = grove.create_run(project, "mars2", outside=True).id
    for batch in batches(_step(step + 1, 100) for step in range(steps)):
        grove.send(run, batch)


def _logged(
    grove: Any,
    project: int,
    arguments: argparse.Namespace,
    log_in_trackio: Callable[[int], float] | None,
) -> dict[str, Any]:
    """Returns median seconds of logging here and with Trackio, in turns, and the median of the
    ratios; the first turn of both is not counted."""
    ours, theirs = [], []
    for number in range(1 + arguments.log_rounds):
        ours.append(timed(lambda: _log(grove, project, arguments.steps))[0])
        if log_in_trackio:
            theirs.append(log_in_trackio(number))
    result: dict[str, Any] = {"log": statistics.median(ours[1:]), "trackio_log": None}
    if theirs:
        ratios = [peer / own for peer, own in zip(theirs[1:], ours[1:], strict=True)]
        result |= {"trackio_log": statistics.median(theirs[1:]),
                   "log_ratio": statistics.median(ratios)}  # fmt: skip
    return result


def _read(grove: Any, project: int, points: int) -> tuple[float, float]:
    from webapp.client.pushing import batches

    run = grove.create_run(project, "mars2", outside=True).id
    for batch in batches(map(_sample, range(points))):
        grove.send(run, batch)
    seconds, series = timed(lambda: grove.points(run, "system.cpu_percent"))
    assert len(series.step) == len(series.time) == len(series.value) == points
    return seconds, sum(series.value)


def _step(seq: int, numbers: int) -> bytes:
    """Returns the log line of a step with `numbers` numbers."""
    step = seq - 1
    names = range(len(_FIXED), numbers)
    payload = {name: value(step, index) for index, name in enumerate(_FIXED)}
    whole = ("nodes", "filtered_trees", "dropped_nodes", "tokens", "refilled_trees",
             "carried_trees")  # fmt: skip
    payload |= dict.fromkeys(whole, step) | {"step": step, "node_share": {}, "reward_by_agent": {}}
    payload["phases"] = {f"m{name}": value(step, name) for name in names}
    return _line(seq, "step.end", payload)


def _sample(step: int) -> bytes:
    payload = {"cpu_percent": value(step, 0), "memory_mb": 1.0}
    return _line(step + 1, "system.sample", payload)


def _line(seq: int, kind: str, payload: dict[str, Any]) -> bytes:
    event = {"seq": seq, "time": 1790000000.0 + seq, "kind": kind, "tree": None, "node": None}
    return msgspec.json.encode({**event, "payload": payload})  # as an engine's log has it
