"""Tests of verl's and prime-rl's loggers: these cannot be installed with our versions, so packages
of the same names call what theirs call."""

from __future__ import annotations

import sys
import textwrap
from importlib import import_module

import pytest

from webapp.client import Grove
from webapp.experiments.models import Run
from webapp.telemetry.selectors import folded

pytestmark = pytest.mark.large

VERL = {
    "verl/__init__.py": "",
    "verl/utils/__init__.py": "",
    "verl/utils/tracking.py": """
        class Tracking:
            supported_backend = ["console"]

            def __init__(self, project_name, experiment_name, default_backend, config=None):
                for backend in default_backend:
                    assert backend in self.supported_backend, f"{backend} is not supported"
                self.logger, self._finished = {}, False

            def log(self, data, step, backend=None):
                for name, one in self.logger.items():
                    if backend is None or name in backend:
                        one.log(data=data, step=step)

            def finish(self, exit_code=0):
                self._finished = True

        class ValidationGenerationsLogger:
            def log(self, loggers, samples, step):
                pass
    """,
}
PRIME = {
    "prime_rl/__init__.py": "",
    "prime_rl/utils/__init__.py": "",
    "prime_rl/utils/monitor/__init__.py": """
        from prime_rl.utils.monitor.multi import MultiMonitor

        _MONITOR = None

        def setup_monitor(wandb_config=None, run_config=None):
            global _MONITOR
            _MONITOR = MultiMonitor([])
            return _MONITOR
    """,
    "prime_rl/utils/monitor/base.py": """
        from abc import ABC, abstractmethod

        class Monitor(ABC):
            @abstractmethod
            def log(self, metrics, step): ...
            @abstractmethod
            def log_samples(self, rollouts, step): ...
            @abstractmethod
            def log_eval_samples(self, rollouts, env_name, step): ...
            @abstractmethod
            def log_distributions(self, distributions, step): ...
            @abstractmethod
            def save_final_summary(self, filename="final_summary.json"): ...
            @abstractmethod
            def close(self): ...
    """,
    "prime_rl/utils/monitor/multi.py": """
        class MultiMonitor:
            def __init__(self, monitors):
                self.monitors = monitors

            def __getattr__(self, name):
                return lambda *given, **named: [
                    getattr(one, name)(*given, **named) for one in self.monitors
                ]
    """,
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a package, and imports an integration that needs it."""
    names = set(sys.modules)

    def write(files, integration):
        for name, text in files.items():
            path = tmp_path / "packages" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        monkeypatch.syspath_prepend(str(tmp_path / "packages"))
        return import_module(f"grove.integrations.{integration}")

    yield write
    for name in set(sys.modules) - names:
        if name.startswith(("verl", "prime_rl", "grove.integrations")):
            del sys.modules[name]


def branched(group, reward):
    """A rollout of verifiers 1: a prompt, a call of a tool and its continuation, and a second
    answer to the same prompt."""
    say = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 2?"}
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"name": "add", "arguments": "{}"}],
    }
    nodes = [
        {"message": say[0], "parent": None, "sampled": False},
        {"message": say[1], "parent": 0, "sampled": False},
        {"message": call, "parent": 1, "sampled": True, "mask": [False, True, True]},
        {"message": {"role": "tool", "content": "4"}, "parent": 2, "sampled": False},
        {"message": {"role": "assistant", "content": "It is 4."}, "parent": 3, "sampled": True},
        {"message": {"role": "assistant", "content": "5"}, "parent": 1, "sampled": True},
    ]
    return {"group_id": group, "nodes": nodes, "reward": reward, "agent_name": "solver"}


def test_verl_finds_the_backend_grove(here, package):
    package(VERL, "verl")
    from verl.utils.tracking import Tracking, ValidationGenerationsLogger

    both = ["console", "grove"]
    tracker = Tracking("Oaks", "ppo", default_backend=both, config={"trainer": {"steps": 2}})
    for step in (1, 2):
        tracker.log(data={"actor/loss": step / 2}, step=step)
    ValidationGenerationsLogger().log(both, [("2 + 2?", "4", 1.0)], 2)
    tracker.finish()
    tracker.finish()
    run = Run.objects.get()
    assert (run.state, run.step, run.experiment.name) == ("finished", 2, "ppo")
    assert run.tracking.config == {"trainer": {"steps": 2}}
    table = folded(run)["logged"]["tables"]["val/generations"]["value"]
    assert table["rows"] == [["2 + 2?", "4", 1]]
    with pytest.raises(AssertionError, match="nothing is not supported"):
        Tracking("Oaks", "ppo", default_backend=["nothing"])


def test_rollouts_of_prime_rl_become_trees(here, package):
    package(PRIME, "prime_rl").install(project="Oaks", name="prime")
    from prime_rl.utils.monitor import setup_monitor

    monitor = setup_monitor(run_config=None)
    prompt = [{"role": "user", "content": "2 + 2?"}]
    rollouts = [
        {"example_id": 7, "prompt": prompt, "reward": reward, "advantage": reward - 0.5,
         "completion": [{"role": "assistant", "content": text}], "is_truncated": reward == 0}
        for text, reward in (("4", 1.0), ("5", 0.0))
    ]  # fmt: skip
    monitor.log({"loss/mean": 0.5, "step": 3}, step=3)
    monitor.log_samples(rollouts, step=3)
    monitor.log_eval_samples(rollouts, "sums", step=3)
    monitor.log_distributions({"rewards": [0.0, 1.0]}, step=3)
    monitor.log_samples([branched("a", 1.0), branched("a", 0.0)], step=4)
    monitor.save_final_summary()
    monitor.close()
    run = Run.objects.get()
    assert (run.state, run.step, run.experiment.name) == ("finished", 4, "prime")
    tree, later = folded(run)["trees"]
    found = [(one["parent"], one["agent"], one["score"], one["program"]) for one in later["nodes"]]
    assert later["statement"] == "system: Be brief.\n\nuser: 2 + 2?"
    assert [(one[0], one[2]) for one in found] == [
        (0, 1), (1, 1), (0, 1), (0, 0), (4, 0), (0, 0),
    ]  # fmt: skip
    assert {one[1] for one in found} == {"solver"} and later["nodes"][0]["tokens"] == 2
    assert found[1][3] == "tool: 4\n\nassistant: It is 4." and found[0][3] == "[add({})]"
    assert tree["statement"] == "2 + 2?"
    assert [(node["program"], node["score"], node["advantage"]) for node in tree["nodes"]] == [
        ("4", 1, 0.5), ("5", 0, -0.5),
    ]  # fmt: skip
    with Grove(here.address, here.token) as client:
        assert client.points(str(run.pk), "logged.eval~1sums~1reward").value == [0.5]
