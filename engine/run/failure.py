"""Where a run failed, as far as the error itself tells: the phase, the agent and the rank.

Invariant: no Ray here, which a search without a trainer does not pay for.
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
    """The event of a failure in `phase`, unless the error knows better; what is not known of its
    place is left empty."""
    message = f"{type(error).__name__}: {error}"
    agent, rank = _AGENT.search(message), _RANK.search(message)
    return ErrorRaised(
        message,
        "".join(traceback.format_exception(error)),
        phase=getattr(error, "phase", phase),
        agent=getattr(error, "agent", "") or (agent[1] or agent[2] if agent else ""),
        rank=int(rank[1]) if rank else None,
    )
