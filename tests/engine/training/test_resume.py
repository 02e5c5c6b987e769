"""Tests of runs that resume from a checkpoint.

A run killed at any moment ends with the same bits as an undisturbed one; damage and changed
settings are reported; a fork starts with another run's weights and its own changes.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import torch

from engine.__main__ import main
from engine.cli.compare_runs import first_difference
from engine.config.run_forks import FORK_FILE, ORIGIN
from engine.config.schema import parse_config
from engine.events.log import FILE_NAME, read_all
from engine.events.timeline import figures, surviving_events
from engine.policy.policy import STATE_FILE
from engine.preload.environment import SETUP_WORKER
from engine.run.exit_status import ExitCode
from tests.helpers.large import large_but
from tests.helpers.luck import luck
from tests.helpers.plugin_packages import EXAMPLE, installed
from tests.helpers.waiting import eventually, patience

pytestmark = pytest.mark.slow
DEADLINE = 400


def settings(**training):
    """A tiny version of the demo that learns: buffers keep leftovers, batches are divided."""
    agent = {
        "sampling": {"max_prompt_tokens": 192, "max_new_tokens": 32},
        "optimizer": {"learning_rate": 1e-3, "warmup_fraction": 0.1},
    }
    plan = {"steps": 5, "trees_per_step": 5, "batch_nodes": 14, "minibatches": 2}
    return parse_config(
        {
            "seed": 7,
            "agents": [{"name": n, "model": f"starter:{n}", **agent} for n in ("oak", "fern")],
            "problems": {"seed": 3, "train": 20, "validation": 5, "test": 4},
            "search": {"nodes_per_tree": 4, "nodes_in_flight": 2},
            "training": {**plan, "validate_every": 2, "checkpoint_every": 2, **training},
            "evaluation": {"tree_nodes": 4},
            "compute": {"deterministic": True},
        }
    )


class Engine:
    """The engine as a separate process, in one run directory, started any number of times."""

    def __init__(self, run_dir, config=None, address="", packages=()):
        """Without a Ray address it starts its own; without settings, the stored ones apply.
        `packages` are folders of packages of methods."""
        self.run_dir, self.address = run_dir, address
        path = [*map(str, packages), os.environ.get("PYTHONPATH", "")]
        self.search_path = {"PYTHONPATH": os.pathsep.join(path)} if packages else {}
        if config:
            run_dir.mkdir()
            self.configure(config)

    def configure(self, config):
        (self.run_dir / "config.json").write_text(config.model_dump_json())

    def start(self):
        self.heard, self.offset = b"", self.file.stat().st_size if self.file.exists() else 0
        with (self.run_dir / "engine.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "engine", "train", str(self.run_dir)],
                stdout=log, stderr=log, start_new_session=True,
                env=os.environ | {"RAY_ADDRESS": self.address} | self.search_path,
            )  # fmt: skip
        return self

    def kill_when(self, moment, what, delay):
        """Sends SIGKILL to the whole process group, `delay` seconds after `moment()` is true."""

        def there():
            assert self.process.poll() is None, f"it ended before {what}: {self.said()}"
            return moment()

        # Writing a checkpoint takes a few hundredths of a second.
        eventually(there, what, DEADLINE, every=0.002)
        time.sleep(delay)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10 * patience())
        return self

    def end(self):
        return self.process.wait(DEADLINE * patience())

    def raylet(self):
        """Command line of the raylet that it has started."""
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if child.name() == "raylet":
                    return " ".join(child.cmdline())
        return ""

    def is_refused(self, reason, capsys):
        """Asserts exit status 2, with the reason on stderr and in the last events of the log. The
        command runs in this process: it does not reach Ray, and an engine takes seconds to
        import."""
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.getsignal(number) for number in numbers}
        try:
            assert main(["train", str(self.run_dir)]) == 2
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        assert reason in capsys.readouterr().err
        error, failed = self.events()[-2:]
        assert error.kind == "error" and reason in error.payload["message"]
        assert failed.payload["state"] == "failed" and reason in failed.payload["reason"]

    def events(self):
        return list(read_all(self.run_dir))

    def kinds(self, kind):
        return [e.payload for e in self.events() if e.kind == kind]

    def has_begun(self, step):
        words = f'"step.start","tree":null,"node":null,"payload":{{"step":{step},'
        return words.encode() in self.news()

    def is_saving(self):
        """True also if it has just saved its first checkpoint: that may take less time than this
        process waits for a CPU."""
        folder = self.run_dir / "checkpoints"
        return any(folder.glob("partial-*")) or any(folder.glob("step-*"))

    def is_testing(self):
        return b'{"name":"final test' in self.news()

    def news(self):
        """Its log since its last start. Called continuously, so each byte is read once."""
        if self.file.exists() and self.file.stat().st_size > self.offset:
            with self.file.open("rb") as file:
                file.seek(self.offset)
                self.heard += file.read()
                self.offset = file.tell()
        return self.heard

    @property
    def file(self):
        return self.run_dir / FILE_NAME

    def weights(self):
        files = sorted((self.run_dir / "models").rglob("*.safetensors"))
        return {f.parent.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files}

    def saved(self):
        """Checkpoints in the surviving events."""
        surviving = surviving_events(self.events())
        return [e.payload for e in surviving if e.kind == "checkpoint.saved"]

    def said(self):
        return (self.run_dir / "engine.log").read_text()[-3000:]


@pytest.fixture(scope="module")
def whole(tmp_path_factory, ray_address):
    """An undisturbed run; it proceeds while the tests start."""
    return Engine(tmp_path_factory.mktemp("whole") / "run", settings(), ray_address).start()


@pytest.mark.large
def test_what_methods_remember_survives_a_kill_bit_for_bit(ray_address, tmp_path):
    """`tests/engine/memory` has the small sibling, without an engine."""
    data = settings(sampler="learnability", trees_per_step=4).model_dump(mode="json")
    data["problems"] |= {"train": 6}
    data["credit"] |= {"advantage": "rae", "dynamic_filter": False}
    data["search"] |= {"strategy": "discounted", "allocator": "knapsack"}
    data["search"]["knapsack"] = {"low": 1, "high": 8, "warmup_steps": 1}
    remembering = parse_config(data)
    undisturbed = Engine(tmp_path / "whole", remembering, ray_address).start()
    cut = Engine(tmp_path / "cut", remembering, ray_address).start()
    cut.kill_when(lambda: cut.has_begun(4), "step 4", luck().uniform(0.0, 0.5))
    cut.start()
    assert undisturbed.end() == 0, undisturbed.said()
    assert cut.end() == 0, cut.said()
    assert cut.kinds("run.resumed")[0]["step"] in (2, 3)
    assert first_difference(undisturbed.run_dir, cut.run_dir) is None
    states = [
        json.loads((newest(e.run_dir) / "state.json").read_text()) for e in (undisturbed, cut)
    ]
    memory = states[0]["memory"]
    assert states[1]["memory"] == memory
    assert memory["search.allocator"]["state"]["steps"] == 5
    assert memory["search.strategy"]["state"]["sums"].keys() == {"oak", "fern"}
    assert memory["credit.advantage"]["state"]["baselines"].keys() == {"oak", "fern"}


@pytest.mark.large
def test_a_composer_s_memory_and_optimizer_survive_a_kill_bit_for_bit(tmp_path):
    """Of another package, so each engine has a Ray of its own, whose actors can import it.
    `test_compose` and `test_generator_and_learner` have the small siblings."""
    with installed(EXAMPLE):
        data = settings(compose="again", trees_per_step=4, batch_nodes=4).model_dump(mode="json")
        data["training"]["again"] = {"rows": 6, "learning_rate": 3e-4}
        again = parse_config(data)
    undisturbed = Engine(tmp_path / "whole", again, packages=[EXAMPLE]).start()
    assert undisturbed.end() == 0, undisturbed.said()
    cut = Engine(tmp_path / "cut", again, packages=[EXAMPLE]).start()
    cut.kill_when(lambda: cut.has_begun(4), "step 4", luck().uniform(0.0, 0.5))
    assert cut.start().end() == 0, cut.said()
    assert cut.kinds("run.resumed")[0]["step"] in (2, 3)
    assert first_difference(undisturbed.run_dir, cut.run_dir) is None
    assert cut.weights() == undisturbed.weights()
    folders = [newest(engine.run_dir) for engine in (undisturbed, cut)]
    kept = []
    for folder in folders:
        memory = json.loads((folder / "state.json").read_text())["memory"]
        rows = memory["training.compose"]["state"]["rows"]
        for row in (row for mine in rows.values() for row in mine):
            del row["tree"]  # ids in the log, where numbering continues after a resume
        kept.append(rows)
    assert kept[0] == kept[1]
    assert {owner: len(rows) for owner, rows in kept[0].items()} == {"oak": 6, "fern": 6}
    for name in ("oak", "fern"):
        learner = torch.load(folders[1] / name / STATE_FILE)["learner"]
        steps = {
            int(one["step"])
            for group in (learner["optimizer"], learner["groups"]["replay"])
            for one in group["state"].values()
        }
        assert len(steps) == 2, "the replay's optimizer steps less often"


@pytest.mark.parametrize("kills", large_but([1], [1, 2]))
def test_killed_at_any_moment_it_comes_to_the_same_bits(whole, ray_address, tmp_path, kills):
    """The engine alone is killed, whose actors outlive it for a moment. If it is killed twice, it
    has a Ray of its own at first: all processes are killed then."""
    chance = luck()
    cut = Engine(tmp_path / "cut", settings(), ray_address if kills == 1 else "").start()
    if kills == 2:
        assert str(SETUP_WORKER) in eventually(cut.raylet, "a Ray of its own")
    if chance.random() < 0.5:
        cut.kill_when(cut.is_saving, "a checkpoint being written", 0.0)
    else:
        step = chance.randint(1, 4)
        cut.kill_when(lambda: cut.has_begun(step), f"step {step}", chance.uniform(0.0, 0.5))
    if kills == 2:
        short_name = Path((cut.run_dir / "ray" / "short_name").read_text())
        assert short_name.is_dir()
        cut.address = ray_address
        cut.start().kill_when(cut.is_testing, "the test split", chance.uniform(0.0, 0.2))
        assert not short_name.exists()
    cut.start()

    assert whole.end() == 0, whole.said()
    assert cut.end() == 0, cut.said()
    assert not (cut.run_dir / "ray").exists()
    resumes = cut.kinds("run.resumed")
    assert len(resumes) == kills, resumes
    assert first_difference(whole.run_dir, cut.run_dir) is None, resumes
    assert len(figures(cut.events())) > 300 and len(cut.weights()) == 2
    assert cut.saved() == whole.saved()
    result = cut.events()
    assert [event.seq for event in result] == list(range(1, len(result) + 1))
    # It learned, and kept what did not fill a batch; otherwise the test would prove nothing.
    assert 2 <= len(whole.kinds("agent.update")) < 10


def test_the_best_reported_checkpoint_stays(whole):
    assert whole.end() == 0, whole.said()
    best = [saved["path"] for saved in whole.saved() if saved["best"]][-1]
    assert (whole.run_dir / best / "fern" / "model.safetensors").is_file()


def test_a_damaged_checkpoint_and_changed_settings_are_reported(
    whole, ray_address, tmp_path, capsys
):
    assert whole.end() == 0, whole.said()
    engine = Engine(tmp_path / "run", settings(), ray_address)
    shutil.copytree(whole.run_dir, engine.run_dir, dirs_exist_ok=True)

    truncate(engine.run_dir / "checkpoints" / "step-000005" / "oak" / "model.safetensors")
    assert engine.start().end() == 0, engine.said()
    assert [e["step"] for e in engine.kinds("run.resumed")] == [4]
    warnings = [line["message"] for line in engine.kinds("log.line") if line["level"] == "warning"]
    assert any("step-000005/oak/model.safetensors has 10 bytes" in line for line in warnings)
    assert engine.weights() == whole.weights()

    engine.configure(settings(steps=6, trees_per_step=3))
    engine.is_refused("training.trees_per_step = 3: the run was begun with 5", capsys)
    (engine.run_dir / "config.json").write_text("{}")
    engine.is_refused("agents", capsys)
    engine.configure(settings())
    for checkpoint in (engine.run_dir / "checkpoints").glob("step-*"):
        truncate(checkpoint / "state.json")
    engine.is_refused("no checkpoint is whole: step-000005/state.json has 10 bytes", capsys)


@pytest.fixture
def parent(whole):
    """The directory of a run that has ended, with its checkpoint of the last step."""
    assert whole.end() == 0, whole.said()
    return whole.run_dir


def newest(run_dir):
    return sorted((run_dir / "checkpoints").glob("step-*"))[-1]


def weights(folder):
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@pytest.mark.large
def test_a_fork_goes_on_from_anothers_weights_with_other_settings(parent, tmp_path, ray_address):
    before = {p: p.read_bytes() for p in parent.rglob("*.json")}
    other = tmp_path / parent.name
    shutil.copytree(parent, other)
    checkpoint = newest(other)
    step = int(checkpoint.name.removeprefix("step-"))
    run_dir = tmp_path / "fork"
    expected = (
        f"training.steps={step + 1}",
        "training.batch_nodes=1",
        "training.minibatches=1",
        "seed=9",
        "agents.0.optimizer.beta1=0.5",
        "problems.test=0",
    )
    assert main(["fork", str(checkpoint), str(run_dir), *expected]) == 0
    shutil.rmtree(checkpoint)  # its parent continues, and keeps newer ones
    assert Engine(run_dir, address=ray_address).start().end() == 0
    events = list(read_all(run_dir))
    assert [e.payload["step"] for e in events if e.kind == "step.end"] == [step + 1]
    lines = [e.payload["message"] for e in events if e.kind == "log.line"]
    assert f"forked from step {step} of run run: weights and optimizer" in lines
    owner = parse_config(json.loads((run_dir / "config.json").read_text())).agents[0].name
    checkpoint = newest(parent)
    origin = run_dir / ORIGIN / "checkpoints" / checkpoint.name / owner
    assert weights(origin) == weights(checkpoint / owner) != weights(newest(run_dir) / owner)
    # Adam's moments were carried over: its step count exceeds the fork's own steps.
    of_parent, of_fork = (
        torch.load(folder / owner / STATE_FILE, weights_only=True)["learner"]
        for folder in (checkpoint, newest(run_dir))
    )
    assert of_fork["version"] == of_parent["version"] + 1
    assert of_fork["optimizer"]["state"][0]["step"] > of_parent["optimizer"]["state"][0]["step"]
    assert of_fork["optimizer"]["param_groups"][0]["betas"][0] == 0.5
    assert {p: p.read_bytes() for p in parent.rglob("*.json")} == before


def test_a_missing_checkpoint_is_reported_with_the_existing_ones(parent, tmp_path, ray_address):
    run_dir = tmp_path / "late"
    assert main(["fork", str(newest(parent)), str(run_dir)]) == 0
    (run_dir / FORK_FILE).write_text(
        json.dumps({"checkpoint": str(parent / "checkpoints" / "step-000099")})
    )
    assert Engine(run_dir, address=ray_address).start().end() == ExitCode.REFUSED
    said = (run_dir / "engine.log").read_text()
    assert "step-000099 does not exist" in said and newest(parent).name in said


def test_a_fork_is_refused_before_anything_is_written(parent, tmp_path, capsys):
    there, removed = newest(parent), parent / "checkpoints" / "step-000099"
    assert main(["fork", str(removed), str(tmp_path / "late")]) == 2
    said = capsys.readouterr().err
    assert f"{removed} does not exist" in said and there.name in said
    assert main(["fork", str(there), str(tmp_path / "late"), "compute.dtype=bfloat16"]) == 2
    assert "compute.dtype" in capsys.readouterr().err
    assert not (tmp_path / "late").exists()
    settings_of_parent = (parent / "config.json").read_bytes()
    assert main(["fork", str(there), str(parent)]) == 2
    assert "name another directory" in capsys.readouterr().err
    assert (parent / "config.json").read_bytes() == settings_of_parent


def truncate(file):
    file.write_bytes(file.read_bytes()[:10])
