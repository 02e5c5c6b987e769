"""Log as server-sent events: all after a cursor, then new ones, until the run has ended.

Invariant: before each poll the reader's session or token, and the permission to see the run, are
checked again; if one has ended, a last comment gives the reason.
Waits: for new events (1 s between two polls), and sends something every 15 s, so that a dead reader
is detected.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from channels.db import database_sync_to_async
from django.http import HttpRequest

from webapp.experiments.models import Run
from webapp.experiments.scheduling.states import ENDED
from webapp.telemetry.selectors import lines
from webapp.telemetry.stream.access import visible_among, why_to_leave

LOOK_SECONDS = 1.0
SILENCE_SECONDS = 15.0
MEDIA_TYPE = "text/event-stream"


async def server_sent_events(
    request: HttpRequest, run: Run, after: int, topics: list[str]
) -> AsyncIterator[bytes]:
    """Yields `id: SEQ` and `data: [seq, t_ms, kind, payload]` per event; `: alive` in silence."""
    silent, reader = 0.0, {"user": request.user, "session": request.session}
    while True:
        async for chunk in lines(run, after, None, topics):
            silent = 0.0
            yield b"".join(map(_message, chunk.splitlines()))
        after = max(after, run.head_seq)
        if run.run_state in ENDED:
            return
        seen = await visible_among(request.user, [run.pk])
        why = await why_to_leave(reader)  # checked last, so that the cause is known
        if why or not seen:
            yield f": {why or 'you may no longer see this run'}\n\n".encode()
            return
        await asyncio.sleep(LOOK_SECONDS)
        silent += LOOK_SECONDS
        if silent >= SILENCE_SECONDS:
            silent = 0.0
            yield b": alive\n\n"
        run = await _read(run)


def _message(line: bytes) -> bytes:
    # A line is [seq, ...]: its seq ends at the first comma.
    return b"id: %s\ndata: %s\n\n" % (line[1 : line.index(b",")], line)


@database_sync_to_async
def _read(run: Run) -> Run:
    return Run.objects.defer("config").get(pk=run.pk)
