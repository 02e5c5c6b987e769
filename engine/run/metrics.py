"""Metrics of one run for Prometheus, computed from its log.

Invariant: `RunMetrics` is a function of the events that it was given, so an engine that resumes a
run shows what earlier ones have recorded. Labels have few values: agents, phases, verdicts, states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from engine.events.vocabulary import Event, RunState, Verdict

_SECONDS = (0.5, 1, 2.5, 5, 15, 30, 60, 150, 300, 900, 3600)
_VERDICTS = frozenset(verdict.value for verdict in Verdict)
_OF_UPDATES = ("loss", "kl", "clip_fraction", "entropy", "gradient_norm", "learning_rate", "lag")


class RunMetrics:
    """What an engine shows of its run; `registry` has it in Prometheus's form."""

    def __init__(self, run: str):
        self.registry = CollectorRegistry()
        own: Mapping[str, Any] = {"registry": self.registry}
        Gauge("grove_engine_info", "Run of this engine.", ["run"], **own).labels(run).set(1)
        self._state = Gauge(
            "grove_engine_state", "1 for the state of the run, 0 for the others.", ["state"], **own
        )
        self._step = Gauge("grove_engine_step", "Last step that ended.", **own)
        self._steps = Gauge("grove_engine_steps", "Planned steps.", **own)
        self._event = Gauge(
            "grove_engine_event_timestamp_seconds", "Time of the newest event.", **own
        )
        self._waiting = Gauge("grove_engine_waiting", "Whether a long wait is under way.", **own)
        self._seconds = Histogram(
            "grove_engine_step_seconds", "Seconds of a step.", buckets=_SECONDS, **own
        )
        self._phases = Counter(
            "grove_engine_phase_seconds", "Seconds by phase of a step.", ["phase"], **own
        )
        self._nodes = Counter("grove_engine_nodes", "Nodes by verdict.", ["verdict"], **own)
        self._tokens = Counter("grove_engine_tokens", "Tokens written.", **own)
        self._reward = Gauge("grove_engine_reward", "Mean raw score of the last step.", **own)
        self._solved = Gauge(
            "grove_engine_solved_ratio", "Share of the last step's trees with a right node.", **own
        )
        self._updates = {
            name: Gauge(f"grove_engine_update_{name}", f"{name} of the last update.",
                        ["agent"], **own)
            for name in _OF_UPDATES
        }  # fmt: skip
        self._kinds: Mapping[str, Callable[[dict[str, Any]], None]] = {
            "run.state": self._changed,
            "run.planned": lambda payload: self._steps.set(payload["steps"]),
            "run.waiting": lambda payload: self._waiting.set(bool(payload["name"])),
            "run.resumed": lambda payload: self._step.set(payload["step"]),
            "step.end": self._ended,
            "node.close": self._closed,
            "agent.update": self._updated,
        }

    def observe(self, event: Event) -> None:
        """Adds the next event of the log."""
        self._event.set(event.time)
        if record := self._kinds.get(event.kind):
            record(event.payload)

    def _changed(self, payload: dict[str, Any]) -> None:
        for state in RunState:
            self._state.labels(state.value).set(state.value == payload["state"])

    def _ended(self, payload: dict[str, Any]) -> None:
        self._step.set(payload["step"])
        self._seconds.observe(payload["seconds"])
        self._reward.set(payload["reward"])
        self._solved.set(payload["solved"])
        for phase, seconds in payload["phases"].items():
            self._phases.labels(phase).inc(seconds)

    def _closed(self, payload: dict[str, Any]) -> None:
        verdict = payload["verdict"]
        self._nodes.labels(verdict if verdict in _VERDICTS else "other").inc()
        self._tokens.inc(payload["tokens"])

    def _updated(self, payload: dict[str, Any]) -> None:
        for name, gauge in self._updates.items():
            value = payload[name]
            gauge.labels(payload["agent"]).set(math.nan if value is None else value)
