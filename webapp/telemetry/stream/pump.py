"""Subscription: a cursor that walks the stored log and sends the events that it passes.

Invariants:
- The cursor moves only over sent events; frames are contiguous: from = the last to + 1.
- Nothing is queued: the next rows are read after the socket accepted the last frame, so a slow
  reader slows only itself.
Waits: for changes of the run (the hub wakes it at least once a second; a watcher of drafts after
5 s in any case), for its rate limit (1 / max_hz).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

import msgspec

from webapp.experiments.presentation import STATUS_COLUMNS, status
from webapp.telemetry import drafts
from webapp.telemetry.ingest import rows
from webapp.telemetry.stream import protocol
from webapp.telemetry.stream.hub import Hub
from webapp.telemetry.stream.protocol import Batch, Gap, Reply, Snapshot, Status, Sub, Subscribed
from webapp.telemetry.stream.view import View

WATCH_SECONDS = 5.0
"""Between two requests of drafts, each of which counts for 15 s."""
DRAFT_SECONDS = 0.25
"""Least time between two frames of drafts."""

Send = Callable[[Reply], Awaitable[None]]

_STATUS = f"SELECT {', '.join(STATUS_COLUMNS)}, comments_changed FROM experiments_run WHERE id = %s"
_ENDS = """
SELECT epoch, head_seq,
       coalesce((SELECT min(seq) FROM telemetry_event WHERE run_id = run.id), 1)
FROM experiments_run AS run WHERE id = %s
"""


class Pump:
    """Sender of one subscription. `view`: the reader's view of the run; nothing else is sent."""

    def __init__(
        self,
        hub: Hub,
        sub: Sub,
        send: Send,
        view: View,
        watch_seconds: float = WATCH_SECONDS,
    ):
        self.hub, self.sub, self.send, self.view = hub, sub, send, view
        self._watch_seconds = watch_seconds
        self.max_hz = sub.max_hz
        self.cursor = 0
        self._last_status: dict | None = None
        self._kinds = frozenset(sub.topics)
        self._shows_drafts = sub.drafts and view.until is None
        self._drafts_version = 0
        self._drafts_at = self._watched_at = -watch_seconds
        self._drafts_late = False
        """Whether the last news came too soon after a frame of drafts."""

    async def run(self) -> None:
        """Sends from the subscription's cursor on, until cancelled."""
        await self._begin()
        with self.hub.watch(self.sub.run) as news:
            while True:
                await self._wait(news)
                news.clear()
                began = time.monotonic()
                await self._send_status()
                await self._catch_up()
                await self._send_drafts()
                await asyncio.sleep(max(0.0, began + 1 / self.max_hz - time.monotonic()))

    async def _wait(self, news: asyncio.Event) -> None:
        """Waits for news; a watcher of drafts at most until it has to say so again."""
        if not self._shows_drafts:
            await news.wait()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAFT_SECONDS if self._drafts_late else self._watch_seconds):
                await news.wait()

    async def _begin(self) -> None:
        epoch, head, oldest = (await self.hub.rows(_ENDS, [self.sub.run]))[0]
        head = self.view.clamp(head)
        after = self.sub.after
        if after is not None and (self.sub.epoch not in (None, epoch) or after > head):
            # The log is not the one that the client holds: start over.
            after = 0
        replay = after is not None and head - after <= protocol.REPLAY_LIMIT
        mode = "replay" if replay else "snapshot"
        self.cursor = after if replay else head
        await self.send(Subscribed(self.sub.sid, epoch, head, oldest, mode))
        if not replay:
            await self.send(Snapshot(self.sub.sid, head, f"{self.view.base}/state?seq={head}"))

    async def _send_status(self) -> None:
        fetched = await self.hub.rows(_STATUS, [self.sub.run])
        if not fetched:
            return
        *columns, comments = fetched[0]
        shown = self.view.status(status(dict(zip(STATUS_COLUMNS, columns, strict=True))))
        if shown is not None and self.view.member:
            shown = {**shown, "comments_changed": comments}
        if shown is not None and shown != self._last_status:
            self._last_status = shown
            await self.send(Status(self.sub.sid, shown))

    async def _catch_up(self) -> None:
        while batch := await self._next_rows():
            first = batch[0][0]
            if first > self.cursor + 1:
                await self.send(Gap(self.sub.sid, self.cursor + 1, first - 1, "retention"))
                self.cursor = first - 1
            for to, events in self._frames(batch):
                await self.send(Batch(self.sub.sid, self.cursor + 1, to, events))
                self.cursor = to
            if len(batch) < protocol.BATCH_EVENTS:
                return

    async def _send_drafts(self) -> None:
        """Sends the newest drafts; those that the socket was too slow for are never sent."""
        now = time.monotonic()
        if not self._shows_drafts:
            return
        self._drafts_late = now - self._drafts_at < DRAFT_SECONDS
        if self._drafts_late:
            return
        self._drafts_at = now
        if now - self._watched_at >= self._watch_seconds:
            self._watched_at = now
            await self.hub.rows(drafts.WATCH, [self.sub.run])
        for version, body in await self.hub.rows(
            drafts.NEWER, [self.sub.run, self._drafts_version]
        ):
            self._drafts_version = version
            tree = self.view.tree
            shown = body if tree is None else drafts.of_tree(body, tree)
            if shown is not None:
                await self.send(protocol.Drafts(self.sub.sid, msgspec.Raw(shown)))

    async def _next_rows(self) -> list[rows.Row]:
        limit = protocol.BATCH_EVENTS
        if self.view.until is not None:
            limit = max(0, min(limit, self.view.until - self.cursor))
        fetched = await self.hub.rows(rows.AFTER, [self.sub.run, self.cursor, limit])
        return [row for row in fetched if row[0] == self.view.clamp(row[0])]

    def _frames(self, batch: list[rows.Row]) -> Iterator[tuple[int, list[msgspec.Raw]]]:
        """Yields (last seq, events) of frames that each stay under the limit of bytes."""
        events: list[msgspec.Raw] = []
        size, last = 0, self.cursor
        for row in batch:
            encoded = self.view.encode(row) if rows.topics_match(self._kinds, row[2]) else b""
            if events and size + len(encoded) > protocol.BATCH_BYTES:
                yield last, events
                events, size = [], 0
            if encoded:
                events.append(msgspec.Raw(encoded))
                size += len(encoded)
            last = row[0]
        yield last, events
