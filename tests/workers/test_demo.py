"""Tests of `manage.py demo` over the whole stack, while each of its processes is killed."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import psutil
import pytest

from engine.events.log import read_all
from engine.recipes import load_recipe
from tests.e2e.stack import ROOT
from tests.helpers.database import a_migrated_postgres
from tests.helpers.waiting import eventually, patience
from tests.workers.engines import let_go, small_engine, steps_counted
from workers.management.commands.up import DEMO_RECIPE
from workers.processes import family, kill_all, wait_ended

pytestmark = pytest.mark.service
SMALLER_RUN = Path(__file__).with_name("smaller_run.py")


@pytest.fixture(scope="module")
def directory(request):
    """One directory for both demos, each with its own run. Its database is already migrated:
    `test_up.py` tests the migration."""
    with tempfile.TemporaryDirectory(prefix="grove-demo-") as path:
        templates = request.config.cache.mkdir("databases")
        a_migrated_postgres(Path(path) / "var" / "postgres", templates)
        yield Path(path)


class DemoCommand:
    """The command as a process, with this engine, or with a small one with these options."""

    def __init__(self, directory, command=None, minutes=1.0, **engine):
        self.var = directory / "var"
        self.others = set((self.var / "runs").glob("*"))
        self.json = directory / f"result-{len(self.others)}.json"
        self.output = directory / f"out-{len(self.others)}"
        arguments = ["demo", "--headless", "--minutes", str(minutes), "--seed", "3"]
        arguments += ["--json", str(self.json), "--var", str(self.var)]
        given = {n: v for n, v in os.environ.items() if n not in ("DATABASE_URL", "BROKER_URL")}
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), *arguments],
                env={
                    **given,
                    "GROVE_PORT": "0",
                    "GROVE_ENGINE_COMMAND": shlex.join(command or small_engine(**engine)),
                },
                stdout=output,
                stderr=output,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        kill_all(family(self.process.pid))
        self.process.wait(10 * patience())

    def result(self):
        return json.loads(self.json.read_text())

    def run_directory(self):
        return next(iter({*(self.var / "runs").glob("*")} - self.others), None)

    def steps_ended(self):
        run = self.run_directory()
        return [e for e in read_all(run) if e.kind == "step.end"] if run else []

    def wait_for_steps(self, count, seconds):
        """Polls until `count` steps have ended; a failure shows the command's output."""

        def there():
            assert self.process.poll() is None, "the command ended"
            return len(self.steps_ended()) >= count

        try:
            eventually(there, "steps to end", seconds)
        except AssertionError as error:
            text = f"{len(self.steps_ended())} of {count} steps: {error}"
            raise AssertionError(f"{text}\n{self.output.read_text()[-4000:]}") from None

    def find(self, word):
        for process in family(self.process.pid):
            try:
                if any(word in part for part in process.cmdline()):
                    return process
            except psutil.NoSuchProcess:
                continue
        return None


@pytest.mark.large
def test_a_kill_loses_no_event_and_no_step(directory):
    words = ("serve_web", "small_engine.py", "celery", "bin/postgres")
    with DemoCommand(directory, steps=80, pause=0.15, hold_every=16) as demo:
        demo.wait_for_steps(1, 400)
        for turn, word in enumerate(words, 1):
            ended = len(demo.steps_ended())
            # Of the next 16 steps, some come after the kill: the run ends after the last kill.
            let_go(demo.run_directory(), 16 * turn)
            demo.wait_for_steps(ended + 3, 400)
            victims = family(demo.find(word).pid) if word == "small_engine.py" else []
            demo.find(word).kill()
            kill_all(victims)
        let_go(demo.run_directory())
        processes = family(demo.process.pid)
        assert demo.process.wait(600 * patience()) == 0, demo.output.read_text()
        assert wait_ended(processes, 60 * patience()) == []
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


@pytest.mark.large
def test_a_demo_with_a_failed_run_exits_with_the_first_cause(directory):
    with DemoCommand(directory, fail="model oak cannot be read") as demo:
        assert demo.process.wait(400 * patience()) == 1
    assert "The run failed: model oak cannot be read" in demo.output.read_text()
    assert demo.result()["steps"] == 0


@pytest.mark.large
def test_the_demo_runs_with_the_real_engine(directory):
    """The demo's own recipe with its agents; only the measured splits are smaller, and each step
    includes what the recipe does every fifth and every tenth step."""
    with DemoCommand(directory, [sys.executable, str(SMALLER_RUN)], minutes=0.05) as demo:
        assert demo.process.wait(600 * patience()) == 0, demo.output.read_text()
        assert not {p.name() for p in family(demo.process.pid)} & {"postgres", "raylet"}
    result = demo.result()
    log = list(read_all(demo.run_directory()))
    kinds = Counter(event.kind for event in log)
    events = result["events"]
    assert events["emitted"] == events["stored"] == events["delivered"] == len(log)
    assert events["gaps"] == events["doubles"] == 0
    assert result["steps"] == kinds["step.end"] >= 1 and result["resumed_steps"] == 0
    steps, recipe = result["steps"], load_recipe(DEMO_RECIPE)
    trees, nodes = recipe.training.trees_per_step, recipe.search.nodes_per_tree
    assert (result["trees"], result["nodes"]) == (trees * steps, trees * nodes * steps)
    assert 0 < result["seconds_to_first_node"] < result["seconds_total"]
    measured = [e.payload for e in log if e.kind == "eval.result" and e.payload["split"] == "test"]
    stated = [one["families"]["stated"] for one in measured]
    before, after = (one["agents"] for one in stated)
    # With the recipe's search and samples, on 6 problems: a tree of 8 nodes and two samples each.
    samples, tree_nodes = recipe.evaluation.samples_per_problem, recipe.evaluation.tree_nodes
    assert tree_nodes == 8, "the result's names say so"
    for one in measured:
        assert (one["problems"], one["tree_nodes"]) == (6, tree_nodes)
        assert one["rollouts"] >= 6 * (2 * samples + tree_nodes)
    assert result["team"] == {
        f"{name}_{when}": one[figure]
        for name, figure in (("tree8", "tree"), ("samples8", "samples"))
        for when, one in zip(("before", "after"), stated, strict=True)
    }
    assert set(result["families"]) == {"stated", "underspecified"}
    validated = [e.payload for e in log if e.kind == "eval.result" and e.payload["split"] != "test"]
    assert [one["step"] for one in validated] == list(range(steps + 1))
    assert {one["problems"] for one in validated} == {4}
    saved = [e.payload for e in log if e.kind == "checkpoint.saved" and not e.payload["final"]]
    assert [one["step"] for one in saved] == list(range(1, steps + 1))
    best = [one["path"] for one in saved if one["best"]][-1]
    assert (demo.run_directory() / best / "rowan" / "model.safetensors").is_file()
    assert {(n, a["pass1_before"], a["pass1_after"]) for n, a in result["agents"].items()} == {
        (name, before[name], after[name]) for name in ("ash", "rowan")
    }
    assert {e.payload["agent"] for e in log if e.kind == "agent.update"} == {"ash", "rowan"}
    programs = {e.payload["program"] for e in log if e.kind == "node.close"}
    assert len(programs) > 10 and any("def solve(x)" in program for program in programs)
    assert (demo.run_directory() / "models" / "ash" / "model.safetensors").is_file()
