"""`manage.py demo` over the whole stack, while each of its processes is killed under it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from engine.events import read_all
from tests.database import a_migrated_postgres
from tests.e2e.stack import ROOT, free_port
from tests.workers.engines import small_engine, steps_counted, wait_for
from workers.processes import family, kill_all, wait_gone


@pytest.fixture(scope="module")
def directory(request):
    """One for both demos, each of which has its own run. Its database has its tables already: how
    it comes by them is a matter of `test_up.py`."""
    with tempfile.TemporaryDirectory(prefix="grove-demo-") as path:
        templates = request.config.cache.mkdir("databases")
        a_migrated_postgres(Path(path) / "var" / "postgres", templates)
        yield Path(path)


class DemoCommand:
    """The command as a process; `engine` are the options of the small engine."""

    def __init__(self, directory, **engine):
        self.var = directory / "var"
        self.others = set((self.var / "runs").glob("*"))
        self.json = directory / f"result-{len(self.others)}.json"
        self.output = directory / f"out-{len(self.others)}"
        command = ["demo", "--headless", "--minutes", "1", "--seed", "3"]
        command += ["--json", str(self.json), "--var", str(self.var)]
        given = {n: v for n, v in os.environ.items() if n not in ("DATABASE_URL", "BROKER_URL")}
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), *command],
                env={
                    **given,
                    "GROVE_PORT": str(free_port()),
                    "GROVE_ENGINE_COMMAND": shlex.join(small_engine(**engine)),
                },
                stdout=output,
                stderr=output,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        kill_all(family(self.process.pid))
        self.process.wait(10)

    def result(self):
        return json.loads(self.json.read_text())

    def run_directory(self):
        return next(iter({*(self.var / "runs").glob("*")} - self.others), None)

    def steps_ended(self):
        run = self.run_directory()
        return [e for e in read_all(run) if e.kind == "step.end"] if run else []

    def wait_for_steps(self, count, seconds):
        """Poll until so many steps have ended; a failure shows what the command said."""

        def there():
            assert self.process.poll() is None, "the command ended"
            return len(self.steps_ended()) >= count

        try:
            wait_for(there, seconds)
        except AssertionError as error:
            told = f"{len(self.steps_ended())} of {count} steps: {error}"
            raise AssertionError(f"{told}\n{self.output.read_text()[-4000:]}") from None

    def find(self, word):
        for process in family(self.process.pid):
            try:
                if any(word in part for part in process.cmdline()):
                    return process
            except psutil.NoSuchProcess:
                continue
        return None


def test_what_is_killed_on_the_way_costs_no_event_and_no_step(directory):
    with DemoCommand(directory, steps=80, pause=0.15) as demo:
        demo.wait_for_steps(1, 180)
        for word in ("serve_web", "small_engine.py", "celery", "bin/postgres"):
            demo.wait_for_steps(len(demo.steps_ended()) + 3, 180)
            victims = family(demo.find(word).pid) if word == "small_engine.py" else []
            demo.find(word).kill()
            kill_all(victims)
        processes = family(demo.process.pid)
        assert demo.process.wait(300) == 0, demo.output.read_text()
        assert wait_gone(processes, 10) == []
    result = demo.result()
    events = result["events"]
    assert events["emitted"] == events["stored"] == events["delivered"] > 300
    assert events["gaps"] == events["doubles"] == 0
    assert steps_counted(demo.run_directory()) == list(range(1, 81))
    assert (result["steps"], result["trees"], result["nodes"]) == (80, 80, 160)
    assert result["resumed_steps"] >= 1 and result["seed"] == 3
    assert result["seconds_to_first_node"] < result["seconds_total"]
    assert result["agents"]["oak"]["pass1_after"] == 0.6
    assert result["team"] == {
        "tree8_before": 0.4, "tree8_after": 0.8, "samples8_before": 0.35, "samples8_after": 0.75,
    }  # fmt: skip
    assert {"python", "torch", "ray", "postgres", "django"} < set(result["versions"])


def test_a_demo_whose_run_fails_ends_with_the_first_cause(directory):
    with DemoCommand(directory, fail="model oak cannot be read") as demo:
        assert demo.process.wait(240) == 1
    assert "The run failed: model oak cannot be read" in demo.output.read_text()
    assert demo.result()["steps"] == 0
