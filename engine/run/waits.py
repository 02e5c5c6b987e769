"""Waits for Ray. Invariant: each has a name and a deadline, and is reported while it lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import ray
from ray.exceptions import GetTimeoutError

from engine.config.deadlines import CALL, Deadline
from engine.run.spans import ended as end_spans

REPORT_AFTER = 2.0

Waiting = Callable[[str, float], object]
"""Callback with the name of a wait and its deadline in seconds; an empty name when it is over."""


NOBODY: Mapping[str, str] = MappingProxyType({})


class TeamError(RuntimeError):
    """Raised if the team could not be started, or one of its actors failed."""

    agent = ""
    """Agent whose call failed, or empty if unknown."""

    def __init__(self, message: str, index: int | None = None):
        super().__init__(message)
        self.index = index
        """Index of the failed call among those that were waited for."""


@contextmanager
def of_agents(names: Iterable[str]) -> Iterator[None]:
    """Attributes a call that fails in the block to the agent at its index in `names`."""
    try:
        yield
    except TeamError as error:
        order = list(names)
        if error.index is not None and error.index < len(order):
            error.agent = order[error.index]
        raise


def wait_for(
    futures: Any,
    name: str,
    waiting: Waiting,
    deadline: Deadline = CALL,
    roles: Mapping[str, str] = NOBODY,
) -> Any:
    """Returns the result of one or several calls; reports a long wait under `name`.

    Raises:
        TeamError: the deadline passed, or the actor failed (with its first cause).
    """
    calls = futures if isinstance(futures, list) else [futures]
    try:
        results = _get(futures, name, waiting, deadline.seconds)
        end_spans(calls)
        return results
    except GetTimeoutError:
        raise TeamError(f"waited {deadline.seconds:g} s for {name}; {deadline.remedy}") from None
    except ray.exceptions.RayError as error:
        end_spans(calls, type(error).__name__)
        raise TeamError(f"{name}: {cause_of(error, roles)}", _failed_index(futures)) from error


def _get(futures: Any, name: str, waiting: Waiting, seconds: float) -> Any:
    try:
        return ray.get(futures, timeout=min(REPORT_AFTER, seconds))
    except GetTimeoutError:
        waiting(name, seconds)
    try:
        return ray.get(futures, timeout=max(0.0, seconds - REPORT_AFTER))
    finally:
        waiting("", 0.0)


def _failed_index(futures: Any) -> int | None:
    """Returns the index of the first failed call; None for a single call."""
    for index, future in enumerate(futures if isinstance(futures, list) else []):
        if ray.wait([future], timeout=0)[0] and _failed(future):
            return index
    return None


def _failed(future: Any) -> bool:
    try:
        ray.get(future)
    except ray.exceptions.RayError:
        return True
    return False


def wait_for_any(
    calls: Sequence[Any], name: str, waiting: Waiting, deadline: Deadline = CALL
) -> list[Any]:
    """Returns those of several calls that are done, at least one, without checking for failures.

    Raises:
        TeamError: none ended before the deadline.
    """
    seconds, waited = deadline.seconds, 0.0
    while True:
        ended, others = ray.wait(list(calls), num_returns=1, timeout=REPORT_AFTER)
        if not ended:
            if not waited:
                waiting(name, seconds)
            waited += REPORT_AFTER
        if waited and (ended or waited >= seconds):
            waiting("", 0.0)
        if ended:
            ended += ended_of(others)
            end_spans(ended)
            return ended
        if waited >= seconds:
            raise TeamError(f"waited {seconds:g} s for {name}; {deadline.remedy}")


def ended_of(calls: Sequence[Any]) -> list[Any]:
    """Returns those of several calls that are done now."""
    return ray.wait(calls, num_returns=len(calls), timeout=0)[0] if calls else []


def cause_of(error: BaseException, roles: Mapping[str, str] = NOBODY) -> str:
    """Returns the first cause of an actor's exception, or of its death, in one line; `roles` maps
    ids of actors to their names."""
    cause = getattr(error, "cause", None) or error
    lines = [line for line in str(cause).strip().splitlines() if line.strip()]
    text = f"{type(cause).__name__}: {lines[-1].strip()}" if lines else type(cause).__name__
    role = roles.get(str(getattr(error, "actor_id", None)))
    return f"{role} is lost: {text}" if role else text
