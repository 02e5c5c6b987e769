"""Timing of the peers of `benchmarks.api` for the same work; runs with the Python that has them.

    python api_peers.py mlflow|trackio FOLDER RUNS STEPS SERIES POINTS
    python api_peers.py trackio_log FOLDER RUNS STEPS SERIES POINTS

Prints {"list", "log", "read", "version"} as JSON, seconds each; only MLflow has `list` and `log`.
Trackio logs in turns with Grove: `trackio_log` logs once for each line of its input, and prints the
seconds.
Both are used as documented: MLflow through its server (sqlite), in batches of 1,000 metrics, its
maximum; Trackio in this process, without a server, on its sqlite file: `trackio.log` for each step,
until `finish` has stored all of them, and its bulk call for the series that is then read. Each
clock stops when the logged values are stored, not later and not earlier. This module imports
nothing of Grove, so that any Python can run it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

READY_SECONDS = 300.0
BATCH = 1000


def value(step: int, name: int) -> float:
    """Returns the number that all systems log."""
    return (step * 31 + name * 17) % 1000 / 1000


def timed(work: Any) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_answer(address: str) -> None:
    """Waits for a server; raises `TimeoutError` if none answers within `READY_SECONDS`."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{address} did not answer in {READY_SECONDS:.0f} s") from None
            time.sleep(0.1)


def with_mlflow(folder: Path, runs: int, steps: int, series: int, points: int) -> dict[str, Any]:
    import mlflow
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    port = free_port()
    store = f"sqlite:///{folder}/mlflow.db"
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", store]
    options = ["--port", str(port), "--workers", "1", "--artifacts-destination", str(folder)]
    server = subprocess.Popen(
        [*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        address = f"http://127.0.0.1:{port}"
        await_answer(f"{address}/health")
        client = MlflowClient(address)
        experiment = client.create_experiment("bench")
        for number in range(runs):
            run = client.create_run(experiment).info.run_id
            result = [Metric("reward", 0.5, 0, 0), Metric("solved", 0.75, 0, 0)]
            client.log_batch(run, result, [Param("seed", str(number))])
        listed, matches = timed(lambda: client.search_runs([experiment], max_results=runs))
        assert len(matches) == runs

        def log() -> None:
            run = client.create_run(experiment).info.run_id
            metrics = [
                Metric(f"m{name}", value(step, name), 0, step)
                for step in range(steps)
                for name in range(series)
            ]
            for first in range(0, len(metrics), BATCH):
                client.log_batch(run, metrics[first : first + BATCH])

        logged, _ = timed(log)
        run = client.create_run(experiment).info.run_id
        for first in range(0, points, BATCH):
            steps_of_batch = range(first, min(first + BATCH, points))
            batch = [Metric("long", value(s, 0), 0, s) for s in steps_of_batch]
            client.log_batch(run, batch)
        read, history = timed(lambda: client.get_metric_history(run, "long"))
        assert len(history) == points
        total = sum(metric.value for metric in history)
    finally:
        server.terminate()
        server.wait(30)
    version = mlflow.__version__
    return {"list": listed, "log": logged, "read": read, "sum": total, "version": version}


def with_trackio(folder: Path, runs: int, steps: int, series: int, points: int) -> dict[str, Any]:
    os.environ["TRACKIO_DIR"] = str(folder)
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    rows = [{"long": value(step, 0)} for step in range(points)]
    SQLiteStorage.bulk_log("bench", "long", rows, steps=list(range(points)))
    read, values = timed(lambda: SQLiteStorage.get_metric_values("bench", "long", "long"))
    assert len(values) == points
    total = sum(entry["value"] for entry in values)
    return {"read": read, "sum": total, "version": trackio.__version__}


def log_in_trackio(folder: Path, steps: int, series: int) -> None:
    """Logs a run for each line of standard input, and prints its seconds."""
    os.environ["TRACKIO_DIR"] = str(folder)
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    answers, sys.stdout = sys.stdout, sys.stderr  # Trackio prints

    def log(run: str) -> None:
        trackio.init("bench", name=run, embed=False, auto_log_gpu=False, auto_log_cpu=False)
        for step in range(steps):
            trackio.log({f"m{name}": value(step, name) for name in range(series)}, step=step)
        trackio.finish()

    for line in sys.stdin:
        run = line.strip()
        logged, _ = timed(lambda run=run: log(run))
        assert len(SQLiteStorage.get_logs("bench", run)) == steps
        print(logged, file=answers, flush=True)


if __name__ == "__main__":
    directory, sizes = Path(sys.argv[2]), [int(size) for size in sys.argv[3:7]]
    if sys.argv[1] == "trackio_log":
        log_in_trackio(directory, sizes[1], sizes[2])
    else:
        work = {"mlflow": with_mlflow, "trackio": with_trackio}[sys.argv[1]]
        print("\n" + json.dumps(work(directory, *sizes)))
