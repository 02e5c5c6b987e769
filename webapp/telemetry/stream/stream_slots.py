"""Limits on the event streams that a caller holds open concurrently, and on the streams and
websockets of an address, whatever its users.

Invariant: a slot is taken before the response begins and is freed once its stream ends, its reader
disconnects, or it never began. Each web process counts its own, as it does sockets.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import aclosing
from weakref import finalize

from django.conf import settings

from webapp.accounts.models import User

MAX_PER_TOKEN = 20
"""Streams per token, or of one user's sessions together."""
MAX_PER_USER = 40
"""Streams of all tokens and sessions of one user."""
RETRY_SECONDS = 10
ADDRESS = "address"


class TooManyStreams(Exception):
    """Raised when the caller must close a stream first."""

    def __init__(self, limit: int, owner: str):
        what = "event streams and sockets" if owner == ADDRESS else "event streams"
        super().__init__(f"At most {limit} {what} at once per {owner}: close one first.")


Key = tuple[str, Hashable]
"""What a stream counts for: kind of owner, and which."""
_open: Counter[Key] = Counter()
_lock = threading.Lock()


def open_streams(user: User) -> int:
    """Returns the number of the user's streams in this process."""
    return _open["user", user.pk]


def open_of_addresses() -> int:
    """Returns the number of event streams and websockets of this process."""
    with _lock:
        return sum(number for (kind, _), number in _open.items() if kind == ADDRESS)


def take_slot(user: User, address: str) -> Slot:
    """Takes the slot of a stream; `address` is from `rate_limits.counted_address`.

    Raises:
        TooManyStreams: the caller, or the address, has reached its limit.
    """
    token = user.token
    owner = "token" if token else "session"
    return _taken(
        [
            ((owner, token.pk if token else user.pk), MAX_PER_TOKEN, owner),
            (("user", user.pk), MAX_PER_USER, "user"),
            _of_address(address),
        ]
    )


def take_socket(address: str) -> Slot:
    """Takes the slot of a websocket of an address. Raises `TooManyStreams` as `take_slot`."""
    return _taken([_of_address(address)])


def _of_address(address: str) -> tuple[Key, int, str]:
    return (ADDRESS, address), settings.STREAMS_PER_ADDRESS, ADDRESS


def _taken(limits: list[tuple[Key, int, str]]) -> Slot:
    with _lock:
        for key, limit, owner in limits:
            if _open[key] >= limit:
                raise TooManyStreams(limit, owner)
        keys = [key for key, _, _ in limits]
        _open.update(keys)
    return Slot(keys)


class Slot:
    """One counted stream, freed once `streamed` ends, or the slot is garbage collected because its
    response never began."""

    def __init__(self, keys: list[Key]):
        self._free = finalize(self, _release, keys)

    def free(self) -> None:
        """Frees the slot. Idempotent."""
        self._free()

    async def streamed(self, blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yields the blocks; frees the slot when they end, or their reader disconnects."""
        try:
            async with aclosing(blocks):
                async for block in blocks:
                    yield block
        finally:
            self._free()


def _release(keys: list[Key]) -> None:
    with _lock:
        for key in keys:
            _open[key] -= 1
            if not _open[key]:
                del _open[key]
