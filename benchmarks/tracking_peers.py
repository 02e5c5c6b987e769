"""One system's part of `benchmarks.tracking`; runs with the Python that has the system.

    python tracking_peers.py grove|wandb|mlflow|trackio FOLDER STEPS NUMBERS

Prints {"call", "stored", "sum", "version"} as JSON: seconds of all calls of `log`; seconds until
everything is in the system's file; and the sum of what is read back from it.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Log = Callable[[dict[str, float], int], object]


def rows(steps: int, numbers: int) -> list[dict[str, float]]:
    """Returns the numbers of each step, the same for every system."""
    names = [f"train/m{name}" for name in range(numbers)]
    return [
        {name: (step * 31 + at * 17) % 1000 / 1000 for at, name in enumerate(names)}
        for step in range(steps)
    ]


def timed(data: list[dict[str, float]], log: Log, finish: Callable[[], object]) -> dict[str, float]:
    started = time.perf_counter()
    for step, row in enumerate(data):
        log(row, step)
    called = time.perf_counter() - started
    finish()
    return {"call": called, "stored": time.perf_counter() - started}


def with_grove(folder: Path, data: list[dict[str, float]]) -> dict[str, Any]:
    root = Path(__file__).resolve().parents[1]
    sys.path[:0] = [str(root), str(root / "webapp" / "client" / "packages")]
    import grove

    grove.init(project="bench", mode="offline", dir=folder)
    seconds = timed(data, grove.log, grove.finish)
    (spool,) = folder.glob("*.spool")
    logged = [json.loads(line) for line in spool.read_text().splitlines()[1:]]
    kept = [one["payload"]["numbers"] for one in logged if one["kind"] == "metric.logged"]
    assert len(kept) == len(data)
    return {**seconds, "sum": sum(sum(one.values()) for one in kept), "version": "this"}


def with_wandb(folder: Path, data: list[dict[str, float]]) -> dict[str, Any]:
    import wandb
    from wandb.proto import wandb_internal_pb2

    settings = wandb.Settings(console="off", x_disable_stats=True, x_disable_meta=True)
    wandb.init(project="bench", mode="offline", dir=str(folder), settings=settings)
    seconds = timed(data, lambda row, step: wandb.log(row, step=step), wandb.finish)
    (file,) = folder.rglob("*.wandb")
    kept = []
    for record in records_of_leveldb(file.read_bytes()):
        message = wandb_internal_pb2.Record()
        message.ParseFromString(record)
        if message.WhichOneof("record_type") == "history":
            named = {one.key or "/".join(one.nested_key): one for one in message.history.item}
            kept.append([float(one.value_json) for key, one in named.items() if key[:5] == "train"])
    assert len(kept) == len(data)
    return {**seconds, "sum": sum(map(sum, kept)), "version": wandb.__version__}


def records_of_leveldb(content: bytes) -> Iterator[bytes]:
    """Yields the records of a file of W&B: LevelDB's log format after a header of 7 bytes."""
    block, header, at, parts = 32768, 7, 7, b""
    while at + header <= len(content):
        if block - at % block < header:  # padding
            at += block - at % block
            continue
        length, kind = struct.unpack_from("<HB", content, at + 4)
        parts += content[at + header : at + header + length]
        at += header + length
        if kind in (1, 4):  # the whole of one, or its last part
            yield parts
            parts = b""


def with_mlflow(folder: Path, data: list[dict[str, float]]) -> dict[str, Any]:
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.set_experiment("bench")
    run = mlflow.start_run()
    seconds = timed(data, lambda row, step: mlflow.log_metrics(row, step=step), mlflow.end_run)
    client = mlflow.MlflowClient()
    histories = [client.get_metric_history(run.info.run_id, name) for name in data[0]]
    assert all(len(one) == len(data) for one in histories)
    total = sum(metric.value for one in histories for metric in one)
    return {**seconds, "sum": total, "version": mlflow.__version__}


def with_trackio(folder: Path, data: list[dict[str, float]]) -> dict[str, Any]:
    os.environ["TRACKIO_DIR"] = str(folder)
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    trackio.init("bench", name="run", embed=False, auto_log_gpu=False, auto_log_cpu=False)
    seconds = timed(data, lambda row, step: trackio.log(row, step=step), trackio.finish)
    kept = SQLiteStorage.get_logs("bench", "run")
    assert len(kept) == len(data)
    total = sum(value for one in kept for name, value in one.items() if name.startswith("train/"))
    return {**seconds, "sum": total, "version": trackio.__version__}


SYSTEMS = {"grove": with_grove, "wandb": with_wandb, "mlflow": with_mlflow, "trackio": with_trackio}

if __name__ == "__main__":
    answers, sys.stdout = sys.stdout, sys.stderr  # some of them print
    given = rows(int(sys.argv[3]), int(sys.argv[4]))
    print(json.dumps(SYSTEMS[sys.argv[1]](Path(sys.argv[2]), given)), file=answers)
