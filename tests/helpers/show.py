"""Development server that shows the pages with a sample run.

    python -m tests.helpers.show --stage growing

Prints a sign-in link to the run page. `growing` feeds the log in real time; the other stages do not
change. Ctrl-C stops the server and discards the database.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import tempfile
import time
from itertools import islice
from pathlib import Path

from engine.events import vocabulary as ev
from tests.helpers.sample_log import Sample, sample_events

STAGES = ("empty", "waiting", "growing", "middle", "finished", "failed", "stopped", "big")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", choices=STAGES, default="growing")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    from workers.local.postgres import EmbeddedPostgres

    with tempfile.TemporaryDirectory() as directory:
        var = Path(directory)
        var.chmod(0o755)
        database = EmbeddedPostgres(var / "postgres")
        try:
            show(chosen.stage, chosen.seed, var, database.start())
        except KeyboardInterrupt:
            print("ended")
        finally:
            database.stop()


def show(stage: str, seed: int, var: Path, database_url: str) -> None:
    """Serves until interrupted."""
    os.environ |= {"GROVE_VAR": str(var), "DATABASE_URL": database_url}
    os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.config.settings"
    os.environ["GROVE_DEBUG"] = "1"  # static files are read on each request: an edit shows
    import django
    from django.core.management import call_command

    from tests.helpers.site import SampleRun, Server

    django.setup()
    call_command("migrate", verbosity=0)
    sample = sample_of(stage, seed)
    run = SampleRun(sample)
    server = Server(var, database_url)
    server.start()
    try:
        print(f"{server.url}{run.sign_in_path()}", flush=True)
        set_stage(run, stage, sample)
        while True:
            time.sleep(3600)
    finally:
        server.kill()


def sample_of(stage: str, seed: int) -> Sample:
    """The sample run of a stage."""
    sample = Sample(seed=seed, steps=10, trees=32, start=time.time())
    if stage == "middle":
        return dataclasses.replace(sample, planned_steps=40, steps=7, start=time.time() - 66)
    if stage == "big":
        return dataclasses.replace(sample, steps=1, trees=1, nodes=5000, final=False)
    if stage == "finished":
        return dataclasses.replace(sample, steps=24, trees=16, start=time.time() - 240)
    return dataclasses.replace(sample, planned_steps=40)


def set_stage(run, stage: str, sample: Sample) -> None:
    """Brings the run to its stage."""
    events = sample_events(sample)
    if stage == "waiting":
        run.feed(islice(events, 1))
    elif stage == "growing":
        grow(run, events)
    elif stage != "empty":
        everything = list(events)
        if stage == "middle":
            everything = until_half_a_step(everything, sample)
        elif stage in ("failed", "stopped"):
            everything = everything[: len(everything) // 3]
        run.feed(everything)
    if stage == "finished":
        run.end("finished")
    elif stage == "stopped":
        run.end("stopped")
    elif stage == "failed":
        fail(run)


def until_half_a_step(events: list[ev.Event], sample: Sample) -> list[ev.Event]:
    """Cuts the log where a later step's trees are half grown and some nodes are open."""
    starts = [index for index, event in enumerate(events) if event.kind == "step.start"]
    return events[: starts[-1] + 1 + int(sample.trees * (1 + 2 * 4.45))]


def grow(run, events) -> None:
    """Feeds the events in real time."""
    batch: list[ev.Event] = []
    for event in events:
        if batch and event.time > batch[-1].time:
            run.feed(batch)
            time.sleep(max(0.0, event.time - time.time()))
            batch = []
        batch.append(event)
    run.feed(batch)
    run.end("finished")


def fail(run) -> None:
    run.run.refresh_from_db()
    message = "agent oak: CUDA out of memory while learning, 17.2 GiB asked, 3.1 GiB free"
    payload = {"message": message, "traceback": "Traceback (most recent call last):\n  ..."}
    run.feed([ev.Event(run.run.head_seq + 1, time.time(), "error", None, None, payload)])
    run.end("failed", message)


if __name__ == "__main__":
    main()
