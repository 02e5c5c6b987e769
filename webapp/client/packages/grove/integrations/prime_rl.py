"""Monitor of prime-rl, whose rollouts become trees.

    from grove.integrations.prime_rl import install

    install(project="Oaks")
    from prime_rl.orchestrator.orchestrator import main

    main()

`install` comes before the orchestrator or the trainer is imported: they then have Grove's monitor
alongside those of their settings. The rollouts of a step are one tree per `group_id` or
`example_id`. Those of verifiers 1 (`nodes`) hang together as they were sampled: an answer is below
the one that it continues. Earlier ones (`prompt`, `completion`) are children of the problem. All
answers of a rollout have its reward. Only the process of rank 0 logs.

Source: `prime_rl/orchestrator/types.py`, and `Trace` and `MessageNode` of `verifiers.v1`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

from prime_rl.utils import monitor as monitors
from prime_rl.utils.monitor.base import Monitor
from prime_rl.utils.monitor.multi import MultiMonitor

from webapp.client import tracking
from webapp.client.tracking.trees import AGENT, Node, Tree, record_step
from webapp.client.tracking.values import text_of

_NO_PROMPT = "(no prompt)"


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
            found = _sampled(rollout) or _completed(rollout)
            if found is None:
                continue
            problem, answers = found
            keys = (_of(rollout, name) for name in ("group_id", "example_id"))
            key = next((str(one) for one in keys if one is not None), problem)
            _, nodes = trees.setdefault(key, (problem, []))
            before = len(nodes)
            nodes += [replace(one, parent=one.parent and one.parent + before) for one in answers]
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


def _completed(rollout: Any) -> tuple[str, list[Node]] | None:
    """Returns the problem and the one answer of a rollout with a completion; None without."""
    answer = _messages(_of(rollout, "completion"))
    if answer is None:
        return None
    usage = _of(rollout, "token_usage") or {}
    tokens = usage.get("output_tokens", 0) if isinstance(usage, Mapping) else 0
    problem = _messages(_of(rollout, "prompt")) or _NO_PROMPT
    return problem, [_node(rollout, answer, int(tokens or 0))]


def _sampled(rollout: Any) -> tuple[str, list[Node]] | None:
    """Returns the problem and the sampled answers of a rollout of verifiers 1; None without. The
    messages between two answers, as of tools, stand before the second."""
    given = list(_of(rollout, "nodes") or ())
    answers: list[Node] = []
    numbers: dict[int, int] = {}
    """Number of the answer, from 1, by index of its node."""
    problem = ""
    for index, one in enumerate(given):
        if not _of(one, "sampled"):
            continue
        between, above = _until_sampled(given, index)
        if above is None:
            problem = problem or _messages(between) or _NO_PROMPT
            between = []
        text = _messages([*between, _of(one, "message")]) or ""
        tokens = sum(map(bool, _of(one, "mask") or ()))
        parent = 0 if above is None else numbers[above]
        answers.append(replace(_node(rollout, text, tokens), parent=parent))
        numbers[index] = len(answers)
    return (problem, answers) if answers else None


def _until_sampled(given: Sequence[Any], index: int) -> tuple[list[Any], int | None]:
    """Returns the messages above a node, oldest first, up to the sampled node that it continues,
    and that node's index. A parent comes before its children."""
    messages: list[Any] = []
    above, last = _of(given[index], "parent"), index
    while isinstance(above, int) and 0 <= above < last:
        if _of(given[above], "sampled"):
            return messages[::-1], above
        messages.append(_of(given[above], "message"))
        above, last = _of(given[above], "parent"), above
    return messages[::-1], None


def _node(rollout: Any, answer: str, tokens: int) -> Node:
    is_cut = bool(_of(rollout, "is_truncated"))
    reward, advantage = _number(rollout, "reward"), _number(rollout, "advantage")
    agent = _of(rollout, "agent_name") or _of(rollout, "actor") or AGENT
    return Node(text_of(answer), reward, advantage, tokens, is_cut, str(agent))


def _of(rollout: Any, name: str) -> Any:
    """Returns a field of a rollout: of a dictionary, or of an object."""
    return rollout.get(name) if isinstance(rollout, Mapping) else getattr(rollout, name, None)


def _number(rollout: Any, name: str) -> float | None:
    value = _of(rollout, name)
    return float(value) if isinstance(value, int | float) and value - value == 0 else None


def _shown(message: Any) -> str:
    """Returns what a message says, and below it the tools that it calls."""
    text, calls = _of(message, "content"), _of(message, "tool_calls") or ()
    said = "" if text is None else text if isinstance(text, str) else json.dumps(text, default=str)
    lines = [said]
    for call in calls:
        called = _of(call, "function") or call
        lines.append(f"[{_of(called, 'name')}({_of(called, 'arguments')})]")
    return "\n".join(line for line in lines if line)


def _messages(content: Any) -> str | None:
    """Returns messages as a text; None for what has no text."""
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return None
    parts = []
    for one in content:
        shown = _shown(one)
        parts.append(shown if len(content) == 1 else f"{_of(one, 'role') or ''}: {shown}")
    return "\n\n".join(parts)
