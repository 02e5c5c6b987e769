"""Answer backends: one interface to agents at test time, wherever their weights are.

Invariants: the process that drives a search, and verifies its programs, holds no model; a local
model is in memory once, however many agents use it, in its own process, which ends with the
process that started it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from typing import Any, Protocol, TypeVar

from engine.config.deadlines import ACTORS_START, CALL, Deadline
from engine.config.schema import RunConfig
from engine.inference.model_forks import has_gpus
from engine.policy.types import Answer, Request
from engine.preload.fork_server import start_fork_server
from engine.problems.problem import Problem

Result = TypeVar("Result")


class BackendError(RuntimeError):
    """An agent can no longer answer; the message names the agent, the cause and the remedy."""


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A request for one answer of an agent."""

    agent: str
    request: Request
    seed: int | None = None
    """Seed of the answer's random numbers, 0 to 2^31 - 1; with None the backend draws its own."""


def process_ended(name: str) -> BackendError:
    """Returns the error for a process that died by itself, nearly always for lack of memory."""
    return BackendError(
        f"{name}: the process of its model ended; look at this machine's free memory"
    )


class AnswerBackend(Protocol):
    """Generates the answers of one agent of a search, or of several with the same weights."""

    calls_at_once: int
    requests_per_call: int

    def ready(self, deadline: Deadline) -> None:
        """Waits until the backend can answer. Raises BackendError or ModelError."""
        ...

    def answer(
        self, batch: Sequence[AgentRequest], temperature: float | None
    ) -> Future[list[Answer]]:
        """Returns the answers, in order of `batch`; `temperature` overrides that of the agents."""
        ...

    def too_long(self, statements: Sequence[str]) -> dict[int, str]:
        """Returns, by index, why a statement exceeds the prompt limit of some agent."""
        ...

    def close(self) -> None: ...


class ModelProcess:
    """One process that holds one model, made by `load`; `call` runs a function on it.

    It is forked from a server that has imported the modules that all models need, once per driver
    process. With `apart` it is spawned, and imports them itself.
    """

    def __init__(self, name: str, load: Callable[..., Any], *arguments: Any, apart: bool = False):
        self.name = name
        context = get_context("spawn" if apart else "forkserver")
        if not apart:
            start_fork_server()
        self._pool = ProcessPoolExecutor(1, mp_context=context)
        before = active_children()
        self._loaded = self._pool.submit(_load, load, arguments)
        self._processes = [child for child in active_children() if child not in before]

    def ready(self, deadline: Deadline) -> None:
        """Waits until the model is loaded.

        Raises:
            BackendError: it took too long, or the process ended. Exceptions of `load` propagate.
        """
        try:
            self._loaded.result(deadline.seconds)
        except TimeoutError:
            raise BackendError(
                f"{self.name}: its model was not loaded within {deadline.seconds:g} s; "
                f"{deadline.remedy}"
            ) from None
        except BrokenProcessPool:
            raise self.ended() from None

    def call(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Submits `function(model, *arguments)` to the process."""
        try:
            return self._pool.submit(_call, function, arguments)
        except BrokenProcessPool:
            raise self.ended() from None

    def ended(self) -> BackendError:
        return process_ended(self.name)

    def close(self) -> None:
        """Kills the process, whatever it is doing."""
        for process in self._processes:
            process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)


class RewardProcess:
    """A reward model in its own process."""

    def __init__(self, directory: Path, run: RunConfig, clock: str | None = None):
        arguments, apart = (directory, run.compute.device, clock), has_gpus(run)
        self._process = ModelProcess("reward model", _load_reward_model, *arguments, apart=apart)

    def ready(self, deadline: Deadline) -> None:
        self._process.ready(deadline)

    def score(self, programs: Sequence[tuple[Problem, str]]) -> list[float]:
        """Returns the probability that each program is right, from 0 to 1.

        Raises:
            BackendError: it took too long, or the process ended.
        """
        pairs = [(problem.statement, program) for problem, program in programs]
        try:
            return self._process.call(_score, pairs).result(CALL.seconds)
        except BrokenProcessPool:
            raise self._process.ended() from None
        except TimeoutError:
            raise BackendError(
                f"waited {CALL.seconds:g} s for the reward model; {CALL.remedy}"
            ) from None

    def close(self) -> None:
        self._process.close()


@contextmanager
def scoring(
    config: RunConfig, clock: str | None = None
) -> Iterator[Callable[..., list[float]] | None]:
    """Context of the `score` function of the settings' reward model, which runs in its own process;
    None without `inference.reward_model`. `clock` is the time that its template writes.

    Raises:
        BackendError: it cannot be started. ValueError: the directory holds no reward model.
    """
    if config.inference.reward_model is None:
        yield None
        return
    from engine.inference.reward_data import check_reward_model

    directory = Path(config.inference.reward_model).expanduser()
    check_reward_model(directory)
    process = RewardProcess(directory, config, clock)
    try:
        process.ready(ACTORS_START)
        yield process.score
    finally:
        process.close()


_model: Any = None
"""The model, in the process of a model; None anywhere else."""


def _load(load: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    global _model
    threading.Thread(target=_end_with_driver, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver handles Ctrl-C
    _model = load(*arguments)


def _end_with_driver() -> None:
    """Ends this process with its driver. A driver that was killed cannot do so, nor does the
    kernel: the parent of this process is the fork server, which lives until all have ended."""
    driver = parent_process()
    assert driver is not None
    driver.join()
    os._exit(1)


def _call(function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
    return function(_model, *arguments)


def _load_reward_model(directory: Path, device: str, clock: str | None) -> Any:
    quiet_libraries()
    import torch

    from engine.inference.reward_model import RewardModel

    torch.set_num_threads(1)  # one core alongside the sandbox; a large model belongs on a GPU
    cuda = device != "cpu" and torch.cuda.is_available()
    return RewardModel.load(directory, "cuda" if cuda else "cpu", clock)


def _score(reward_model: Any, pairs: list[tuple[str, str]]) -> list[float]:
    return reward_model.score(pairs)


def quiet_libraries() -> None:
    """Disables progress bars and messages of libraries, which would break up Grove's output."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
