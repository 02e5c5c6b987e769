"""Backends of agents whose weights are on this machine, each in a process of its own.

`LocalBackend` keeps one open batch: a request joins it within `TURN_SECONDS`, and an answer is
returned as soon as it has ended. `BatchBackend` serves `compute.deterministic`, where the requests
of a wave are one batch, whose sums are in one order.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from engine.config.agents import AgentConfig
from engine.config.deadlines import Deadline
from engine.config.schema import RunConfig
from engine.inference.backends import (
    AgentRequest,
    BackendError,
    ModelProcess,
    quiet_libraries,
)
from engine.inference.model_forks import needs_own_start
from engine.policy.types import Answer, AnswerCall, Request
from engine.preload.allocator import sums_in_one_order

LOCAL_BATCH = 64
TURN_SECONDS = 0.25
"""Longest time between two looks of the process at new requests, once one of its steps is over."""


class BatchBackend:
    """Backend that generates one batch at a time, to its last answer."""

    calls_at_once = 1
    requests_per_call = LOCAL_BATCH

    def __init__(
        self,
        agents: Sequence[AgentConfig],
        run: RunConfig,
        position: int,
        run_dir: Path | None,
        clock: str | None = None,
    ):
        self._process = _process(agents, run, position, run_dir, clock)

    def ready(self, deadline: Deadline) -> None:
        self._process.ready(deadline)

    def answer(
        self, batch: Sequence[AgentRequest], temperature: float | None
    ) -> Future[list[Answer]]:
        return self._process.call(_answer, list(batch), temperature)

    def too_long(self, statements: Sequence[str]) -> dict[int, str]:
        return self._process.call(_too_long, list(statements)).result()

    def close(self) -> None:
        self._process.close()


class LocalBackend:
    """Backend whose batch is open: every request is a call of its own.

    Invariant: at most one turn of the process is in flight; a turn submits what has arrived, and
    the next one begins when it has ended, while any request has no answer.
    """

    calls_at_once = LOCAL_BATCH
    requests_per_call = 1

    def __init__(
        self,
        agents: Sequence[AgentConfig],
        run: RunConfig,
        position: int,
        run_dir: Path | None,
        clock: str | None = None,
    ):
        self._process = _process(agents, run, position, run_dir, clock)
        self._lock = threading.RLock()
        """Reentrant: a turn that has ended already calls back at once."""
        self._count = 0
        self._arrived: dict[int, tuple[AgentRequest, float | None]] = {}
        """Requests, with their temperature, that the process does not have yet, by number."""
        self._futures: dict[int, Future[list[Answer]]] = {}
        self._in_turn = False

    def ready(self, deadline: Deadline) -> None:
        self._process.ready(deadline)

    def answer(
        self, batch: Sequence[AgentRequest], temperature: float | None
    ) -> Future[list[Answer]]:
        """Adds the only request of `batch` to the open batch.

        Raises:
            BackendError: the process of the model ended.
        """
        (request,) = batch
        future: Future[list[Answer]] = Future()
        with self._lock:
            number, self._count = self._count, self._count + 1
            self._arrived[number] = request, temperature
            self._futures[number] = future
            if not self._in_turn:
                self._begin_turn()
        return future

    def too_long(self, statements: Sequence[str]) -> dict[int, str]:
        return self._process.call(_too_long, list(statements)).result()

    def close(self) -> None:
        self._process.close()

    def _begin_turn(self) -> None:
        """Sends what has arrived; the caller holds the lock."""
        arrived, self._arrived = self._arrived, {}
        turn = self._process.call(_write, arrived)
        self._in_turn = True
        turn.add_done_callback(self._end_turn)

    def _end_turn(self, turn: Future[dict[int, Answer]]) -> None:
        """Returns the answers of a turn and begins the next one; on the pool's own thread."""
        cause = _cause_of(turn)
        with self._lock:
            self._in_turn = False
            answers = {} if cause else turn.result()
            ended = {number: self._futures.pop(number) for number in answers}
            if self._futures and cause is None:
                try:
                    self._begin_turn()
                except BackendError as error:
                    cause = error
            failed, self._futures = (self._futures, {}) if cause else ({}, self._futures)
        # Outside of the lock: a thread that waits for one may call `answer` at once.
        for number, future in ended.items():
            future.set_result([answers[number]])
        for future in failed.values():
            future.set_exception(cause)


def _cause_of(turn: Future[Any]) -> BaseException | None:
    if turn.cancelled():
        return BrokenProcessPool("the process was closed")
    return turn.exception()


def _process(
    agents: Sequence[AgentConfig],
    run: RunConfig,
    position: int,
    run_dir: Path | None,
    clock: str | None,
) -> ModelProcess:
    names = ", ".join(agent.name for agent in agents)
    title = f"agent{'s' if len(agents) > 1 else ''} {names}"
    apart = needs_own_start(run, agents)
    return ModelProcess(title, _load_agents, agents, run, position, run_dir, clock, apart=apart)


def _load_agents(
    agents: Sequence[AgentConfig],
    run: RunConfig,
    position: int,
    run_dir: Path | None,
    clock: str | None,
) -> Any:
    if run.compute.deterministic:
        sums_in_one_order()
    quiet_libraries()
    import torch

    from engine.policy.host import PolicyHost

    if run.compute.device != "cpu" and torch.cuda.is_available():
        torch.cuda.set_device(position % torch.cuda.device_count())
    # Frozen: no optimizer and no reference, because nothing learns here.
    frozen = {"trainable": False, "lora": None, "shares_weights_with": None}
    group = [agent.model_copy(update=frozen) for agent in agents]
    return PolicyHost([group], run, [run.seed + 7919 * position], run_dir=run_dir, clock=clock)


def _too_long(host: Any, statements: Sequence[str]) -> dict[int, str]:
    return host.too_long(statements)


def _answer(host: Any, batch: Sequence[AgentRequest], temperature: float | None) -> list[Answer]:
    requests: dict[str, list[Request]] = {}
    for item in batch:
        requests.setdefault(item.agent, []).append(item.request)
    seed = batch[0].seed
    stream = None if seed is None else ("asked", seed)  # codespell:ignore
    answers = host.answer(AnswerCall(requests, temperature, stream=stream))
    written = {name: iter(mine) for name, mine in answers.items()}
    return [next(written[item.agent]) for item in batch]


def _write(
    host: Any, arrived: Mapping[int, tuple[AgentRequest, float | None]]
) -> dict[int, Answer]:
    """Submits requests and generates for a turn; returns the answers that have ended, by number."""
    if not arrived:
        return host.write({}, TURN_SECONDS)
    by_temperature: dict[float | None, dict[int, tuple[str, Request]]] = {}
    for number, (item, temperature) in arrived.items():
        mine = by_temperature.setdefault(temperature, {})
        mine[number] = (item.agent, item.request)
    answers: dict[int, Answer] = {}
    for temperature, requests in by_temperature.items():
        answers |= host.write(requests, TURN_SECONDS, temperature=temperature)
    return answers
