"""Monitor of prime-rl, whose rollouts become trees.

    from grove.integrations.prime_rl import install

    install(project="Oaks")
    from prime_rl.orchestrator.orchestrator import main

    main()

`install` comes before the orchestrator or the trainer is imported: they then have Grove's monitor
alongside those of their settings. The rollouts of a step (`prompt`, `completion`, `reward`) are one
tree per `example_id`, all of them children of the problem. Only the process of rank 0 logs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import wraps
from typing import Any

from prime_rl.utils import monitor as monitors
from prime_rl.utils.monitor.base import Monitor
from prime_rl.utils.monitor.multi import MultiMonitor

from webapp.client import tracking
from webapp.client.tracking.trees import Node, Tree, record_step
from webapp.client.tracking.values import text_of


class GroveMonitor(Monitor):
    """Logs to a run that it starts with the arguments of `grove.init`."""

    def __init__(self, **init: Any):
        self._history: list[dict[str, Any]] = []
        rank = os.environ.get("RANK", os.environ.get("DP_RANK", "0"))
        self.run = tracking.init(**init) if rank == "0" else tracking.init(mode="disabled")

    @property
    def history(self) -> list[dict[str, Any]]:
        return self._history

    def log(self, metrics: dict[str, Any], step: int | None = None) -> None:
        self._history.append(metrics)
        given = metrics.get("step") if step is None else step
        values = {name: value for name, value in metrics.items() if name != "step"}
        self.run.log(values, step=None if given is None else int(given))

    def log_samples(self, rollouts: Sequence[Any], step: int) -> None:
        """Records the rollouts of a step as its trees; those without a text are left out."""
        trees: dict[Any, tuple[str, list[Node]]] = {}
        for rollout in rollouts:
            answer = _messages(_of(rollout, "completion"))
            if answer is None:
                continue
            problem = _messages(_of(rollout, "prompt")) or "(no prompt)"
            key = _of(rollout, "example_id")
            _, nodes = trees.setdefault(problem if key is None else str(key), (problem, []))
            nodes.append(_node(rollout, answer))
        if trees:
            grown = [Tree(text_of(problem), nodes) for problem, nodes in trees.values()]
            record_step(self.run.emit, self.run.new_tree, step, grown)

    def log_eval_samples(self, rollouts: Sequence[Any], env_name: str, step: int) -> None:
        rewards = [reward for one in rollouts if (reward := _number(one, "reward")) is not None]
        if rewards:
            self.run.log({f"eval/{env_name}/reward": sum(rewards) / len(rewards)}, step=step)

    def log_distributions(self, distributions: dict[str, list[float]], step: int) -> None:
        named = {
            name: tracking.Histogram(values) for name, values in distributions.items() if values
        }
        self.run.log({f"distributions/{name}": one for name, one in named.items()}, step=step)

    def log_final_samples(self) -> None:
        """Does nothing: samples are there already."""

    log_final_distributions = log_final_samples

    def save_final_summary(self, filename: str = "final_summary.json") -> None:
        """Does nothing: the run's summary is the newest value of each name."""

    def close(self) -> None:
        self.run.finish()


def install(**init: Any) -> None:
    """Has every monitor that prime-rl sets up from now on accompanied by a `GroveMonitor`."""
    set_up = monitors.setup_monitor

    @wraps(set_up)
    def with_grove(*arguments: Any, **given: Any) -> Any:
        config = given.get("run_config")
        settings = config.model_dump(mode="json") if hasattr(config, "model_dump") else None
        theirs = set_up(*arguments, **given)
        monitors._MONITOR = MultiMonitor([theirs, GroveMonitor(**{"config": settings, **init})])
        return monitors._MONITOR

    monitors.setup_monitor = with_grove


def _node(rollout: Any, answer: str) -> Node:
    usage = _of(rollout, "token_usage") or {}
    tokens = usage.get("output_tokens", 0) if isinstance(usage, Mapping) else 0
    is_cut = bool(_of(rollout, "is_truncated"))
    reward, advantage = _number(rollout, "reward"), _number(rollout, "advantage")
    return Node(text_of(answer), reward, advantage, int(tokens or 0), is_cut)


def _of(rollout: Any, name: str) -> Any:
    """Returns a field of a rollout: of a dictionary, or of an object."""
    return rollout.get(name) if isinstance(rollout, Mapping) else getattr(rollout, name, None)


def _number(rollout: Any, name: str) -> float | None:
    value = _of(rollout, name)
    return float(value) if isinstance(value, int | float) and value - value == 0 else None


def _messages(content: Any) -> str | None:
    """Returns messages as a text; None for what has no text."""
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return None
    parts = []
    for one in content:
        text = _of(one, "content")
        shown = text if isinstance(text, str) else json.dumps(text, default=str)
        parts.append(shown if len(content) == 1 else f"{_of(one, 'role') or ''}: {shown}")
    return "\n\n".join(parts)
