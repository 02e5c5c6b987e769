"""How many event streams one caller holds open at once, as `connection` counts sockets.

Invariant: a slot is taken before the answer begins and is free again once its stream ends, its
reader leaves, or it never began. Each web process counts its own, as it does sockets.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import aclosing
from weakref import finalize

from webapp.accounts.models import User

MAX_PER_TOKEN = 20
"""Of one token, or of one user's sessions together."""
MAX_PER_USER = 40
"""Of all tokens and sessions of one user."""
RETRY_SECONDS = 10


class TooManyStreams(Exception):
    """The caller has to close a stream first."""

    def __init__(self, limit: int, whose: str):
        super().__init__(f"At most {limit} event streams at once per {whose}: close one first.")


_open: Counter[Hashable] = Counter()
_lock = threading.Lock()


def open_streams(user: User) -> int:
    """Of this process."""
    return _open["user", user.pk]


def take_slot(user: User) -> Slot:
    """Count a stream.

    Raises:
        TooManyStreams: the caller holds as many as they may.
    """
    token = user.token
    whose = "token" if token else "session"
    limits = [
        ((whose, token.pk if token else user.pk), MAX_PER_TOKEN, whose),
        (("user", user.pk), MAX_PER_USER, "user"),
    ]
    with _lock:
        for key, limit, whose in limits:
            if _open[key] >= limit:
                raise TooManyStreams(limit, whose)
        keys = [key for key, _, _ in limits]
        _open.update(keys)
    return Slot(keys)


class Slot:
    """One counted stream; free again once `streamed` ends, or the slot is garbage because its
    answer was never begun."""

    def __init__(self, keys: list[Hashable]):
        self._free = finalize(self, _release, keys)

    async def streamed(self, blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The blocks; the slot is free when they end, or their reader leaves."""
        try:
            async with aclosing(blocks):
                async for block in blocks:
                    yield block
        finally:
            self._free()


def _release(keys: list[Hashable]) -> None:
    with _lock:
        for key in keys:
            _open[key] -= 1
            if not _open[key]:
                del _open[key]
