"""Logs of the sizes that the page must handle: real steps of a sample run, repeated.

Invariant: the result is one valid log: seq from 1 without a gap, a tree's id is the seq of its
`tree.open`, steps count up. Problems, programs, draws and credit are those of a run of the sample
authors (`tests.helpers.sample_log`), so payloads have the sizes that an engine writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, islice

import msgspec

from engine.events.vocabulary import Event
from tests.helpers.sample_log import START, Sample, sample_events

NODES_PER_SECOND = 50
"""Rate of arriving nodes while frames are counted."""
TREES, NODES = 32, 8
STEPS_PER_MINUTE = 241 / 6
"""Rate of the demo on two cores at 2 GHz, as stated in the README."""
STEP_SECONDS = 60 / STEPS_PER_MINUTE
HOUR_STEPS = round(60 * STEPS_PER_MINUTE)
_BODY = ("step.start", "tree.open", "node.open", "node.text", "node.close", "node.credit",
         "tree.close", "agent.update", "tree.learned", "step.end", "system.sample")  # fmt: skip
_DIFFERENT_STEPS = 8


class LongLog:
    """A run of steps of 32 trees of 8 nodes at the demo's rate; events are generated on demand."""

    def __init__(self) -> None:
        sample = Sample(steps=_DIFFERENT_STEPS, trees=TREES, nodes=NODES, final=False)
        events = list(sample_events(sample))
        starts = [index for index, event in enumerate(events) if event.kind == "step.start"]
        self._head = events[: starts[0]]
        pairs = zip(starts, [*starts[1:], len(events)], strict=True)
        self._steps = [[e for e in events[a:b] if e.kind in _BODY] for a, b in pairs]
        self.events_per_step = sum(map(len, self._steps)) // len(self._steps)
        self._events = self._all()
        self.events_taken = 0
        """Number of events taken so far."""

    def _take(self, many: int) -> list[Event]:
        taken = list(islice(self._events, many))
        self.events_taken += len(taken)
        return taken

    def take_steps(self, steps: int) -> Iterator[list[Event]]:
        """Yields the events of the next `steps` whole steps, step by step."""
        for _ in range(steps):
            batch: list[Event] = []
            while not batch or batch[-1].kind != _BODY[-1]:
                batch += self._take(1)
            yield batch

    def _all(self) -> Iterator[Event]:
        planned = HOUR_STEPS * 2
        for event in self._head:
            payload = dict(event.payload, steps=planned) if event.kind == "run.planned" else None
            yield event if payload is None else msgspec.structs.replace(event, payload=payload)
        seq, time = len(self._head), self._head[-1].time
        for step in count(1):
            body = self._steps[step % len(self._steps)]
            yield from again(body, seq, time, step)
            seq, time = seq + len(body), time + STEP_SECONDS


def again(body: list[Event], seq: int, time: float, step: int) -> Iterator[Event]:
    """Yields a step's events as those of another step, from `seq` + 1 on."""
    trees: dict[int, int] = {}
    first, span = body[0].time, (body[-1].time - body[0].time) or 1.0
    for event in body:
        seq += 1
        if event.kind == "tree.open":
            trees[event.tree] = seq
        payload = event.payload
        if "step" in payload:
            payload = {**payload, "step": step}
        if "trees" in payload and event.kind == "agent.update":
            payload["trees"] = list(trees.values())
        tree = event.tree and trees[event.tree]
        at = time + (event.time - first) / span * STEP_SECONDS
        yield Event(seq, at, event.kind, tree, event.node, payload)


def wide_trees(trees: int, nodes: int) -> list[Event]:
    """Returns the log of a step of `trees` trees of `nodes` nodes each, complete except for its
    end.

    One tree is searched and copied `trees` times; the copies' nodes open in turns.
    """
    sample = Sample(steps=1, trees=1, nodes=nodes, final=False, seed=7)
    events = list(sample_events(sample))
    opened = next(index for index, event in enumerate(events) if event.kind == "tree.open")
    grown = [e for e in events[opened:] if e.kind in ("node.open", "node.close")]
    log = list(events[:opened])
    seq = len(log)
    ids = [seq + 1 + index for index in range(trees)]
    for seq in ids:
        log.append(msgspec.structs.replace(events[opened], seq=seq, tree=seq))
    for event in grown:
        for tree in ids:
            seq += 1
            log.append(msgspec.structs.replace(event, seq=seq, tree=tree))
    return log


def until_nodes(log: Iterable[Event], nodes: int) -> tuple[list[Event], list[Event]]:
    """Returns (events up to the close of `nodes` nodes, the rest)."""
    log = list(log)
    closes = [index for index, event in enumerate(log) if event.kind == "node.close"]
    cut = closes[nodes - 1] + 1
    return log[:cut], log[cut:]


def sample_of_long_log() -> Sample:
    """Returns the settings of the run to which such a log belongs."""
    return Sample(steps=HOUR_STEPS, trees=TREES, nodes=NODES, start=START)
