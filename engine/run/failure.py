"""Failure of a run: its phase, agent and rank, as far as the error shows them.

Invariant: this module does not import Ray, which a search without a trainer does not need.
"""

from __future__ import annotations

import re
import traceback

from engine.events.vocabulary import ErrorRaised

START = "start"
"""The phase before the first step."""
_AGENT = re.compile(r"\bagents?\.([a-z][a-z0-9-]*)|\bagent ([a-z][a-z0-9-]*):")
_RANK = re.compile(r"\brank (\d+) of \d+")


def error_raised(error: BaseException, phase: str = START) -> ErrorRaised:
    """Returns the event of a failure in `phase`, or in the phase that the error itself has; an
    unknown agent or rank is left empty."""
    message = f"{type(error).__name__}: {error}"
    agent, rank = _AGENT.search(message), _RANK.search(message)
    return ErrorRaised(
        message,
        "".join(traceback.format_exception(error)),
        phase=getattr(error, "phase", phase),
        agent=getattr(error, "agent", "") or (agent[1] or agent[2] if agent else ""),
        rank=int(rank[1]) if rank else None,
    )
