"""A sample log with health warnings: what an engine would have written had training gone wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from engine.events.states import HealthState
from engine.events.vocabulary import Event, HealthChanged
from engine.health import RULES

SEEN = {
    "mismatch": "Mean mismatch of the last 5 updates is 0.412 nats per token.",
    "entropy_collapse": "Mean entropy of the last 10 updates is 0.0031 nats per token, at a reward "
    "of 0.41.",
    "equal_groups": "40 of 40 trees of the last 5 steps have equal scores; in 40 of them every "
    "node scored 0.",
    "held_out_falls": "Validation Pass@1 fell from 61.2% to 43.0% (± 3.3%) while the reward rose "
    "from 0.58 to 0.74.",
    "idle_agent": "None of the 480 nodes of the last 5 steps.",
    "slow_step": "Step 2 took 60 s, 30 times the median of the 12 before it (2 s).",
}  # fmt: skip


def opened(rule: str, step: int, agent: str = "oak", since: int = 1) -> HealthChanged:
    title, advice = RULES[rule].TITLE, RULES[rule].ADVICE
    return HealthChanged(
        rule=rule, state=HealthState.OPENED, step=step, title=title, seen=SEEN[rule], since=since,
        since_time=1_763_700_000.0 + 60 * since, agent=agent, advice=advice,
        figures={"limit": 0.1},
    )  # fmt: skip


def closed(rule: str, step: int, agent: str = "oak", since: int = 1) -> HealthChanged:
    return HealthChanged(
        rule=rule, state=HealthState.CLOSED, step=step, title=RULES[rule].TITLE,
        seen="Not seen in the last 10 steps.", since=since,
        since_time=1_763_700_000.0 + 60 * since, agent=agent,
    )  # fmt: skip


def with_health(
    events: Iterable[Event], changes: Mapping[int, Iterable[HealthChanged]]
) -> list[Event]:
    """Returns the log with these changes after the steps' ends, numbered anew."""
    trees: dict[int | None, int | None] = {None: None}
    log = []
    for seq, event in enumerate(_inserted(events, changes), start=1):
        if event.kind == "tree.open":
            trees[event.tree] = seq
        payload = event.payload
        if "trees" in payload and event.kind == "agent.update":
            payload = {**payload, "trees": [trees[tree] for tree in payload["trees"]]}
        renumbered = msgspec.structs.replace(
            event, seq=seq, tree=trees[event.tree], payload=payload
        )
        log.append(renumbered)
    return log


def _inserted(
    events: Iterable[Event], changes: Mapping[int, Iterable[HealthChanged]]
) -> Iterator[Event]:
    for event in events:
        yield event
        if event.kind == "step.end":
            for change in changes.get(event.payload["step"], ()):
                body = msgspec.to_builtins(change)
                yield Event(0, event.time, body.pop("type"), None, None, body)
