"""Where a run failed, as far as the error itself tells: the phase, the agent and the rank."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from engine.events import ErrorRaised
from engine.training.waits import TeamError

START = "start"
"""The phase before the first step."""
_AGENT = re.compile(r"\bagents?\.([a-z][a-z0-9-]*)")
_RANK = re.compile(r"\brank (\d+) of \d+")


@contextmanager
def of_agents(names: Iterable[str]) -> Iterator[None]:
    """A call that fails in the block is that of the agent at its place."""
    try:
        yield
    except TeamError as error:
        order = list(names)
        if error.place is not None and error.place < len(order):
            error.agent = order[error.place]
        raise


def error_raised(error: BaseException) -> ErrorRaised:
    """The event of a failure; what is not known of its place is left empty."""
    message = f"{type(error).__name__}: {error}"
    agent, rank = _AGENT.search(message), _RANK.search(message)
    return ErrorRaised(
        message,
        traceback.format_exc(),
        phase=getattr(error, "phase", START),
        agent=getattr(error, "agent", "") or (agent[1] if agent else ""),
        rank=int(rank[1]) if rank else None,
    )
