"""Messages of the stream, subprotocol grove.v1: JSON text frames, tagged by `type`.

Client: hello, sub, ack, set, unsub, ping. Server: welcome, subscribed, snapshot, batch, gap,
status, drafts, error, bye, pong. `sid` is the client's name for a subscription. An event on the
wire is [seq, t_ms, kind, payload], where payload also holds the event's `tree` and `node` if it has
any.
"""

from __future__ import annotations

import uuid
from enum import IntEnum
from typing import Annotated, Any

import msgspec

SUBPROTOCOL = "grove.v1"
VERSION = 1
HEARTBEAT_SECONDS = 15.0
MAX_FRAME_BYTES = 64 * 1024
MAX_SUBSCRIPTIONS = 8
MAX_SOCKETS_PER_USER = 10
MAX_SOCKETS_PER_SHARE = 100
"""A whole class may open one link."""
MAX_MESSAGES_PER_SECOND = 20
REPLAY_LIMIT = 20_000
"""Maximum events behind the head that are replayed; beyond it a subscription gets a snapshot."""
BATCH_EVENTS = 500
BATCH_BYTES = 256 * 1024

Sid = int | Annotated[str, msgspec.Meta(max_length=40)]
Hertz = Annotated[float, msgspec.Meta(ge=0.1, le=60)]


class Close(IntEnum):
    """Close code of the socket. A `bye` before it has code, reason, and when to reconnect; the
    close frame has the reason, too."""

    RESTARTING = 1012
    TRY_LATER = 1013
    PROTOCOL = 4400
    NOT_SIGNED_IN = 4401
    NO_ACCESS = 4403
    TOO_SLOW = 4408
    TOO_MANY = 4429

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    Close.RESTARTING: "The server is restarting: reconnect.",
    Close.TRY_LATER: "The database does not answer: reconnect.",
    Close.PROTOCOL: "The message is not valid in this protocol.",
    Close.NOT_SIGNED_IN: "Session, token or link is not valid, or no longer.",
    Close.NO_ACCESS: "The token cannot read runs, or you may no longer see the run.",
    Close.TOO_SLOW: "Frames were not accepted in time: reconnect.",
    Close.TOO_MANY: "Too many sockets of a user or an address, too many messages, or too many "
    "wrong tokens: reconnect after the given time.",
}


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """Base of client messages."""


class Hello(Message, tag="hello"):
    v: int


class Sub(Message, tag="sub"):
    """Subscribes to a run's log after an event; repeated with the same sid, it restarts."""

    sid: Sid
    run: uuid.UUID
    topics: Annotated[tuple[str, ...], msgspec.Meta(max_length=40)] = ("*",)
    """Kinds, their first words ("node"), or "*"; a leading minus excludes."""
    after: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Seq of the last event that the client has; null requests a snapshot."""
    epoch: uuid.UUID | None = None
    max_hz: Hertz = 10.0
    drafts: bool = False
    """Whether what is being written is to be sent too."""


class Ack(Message, tag="ack"):
    sid: Sid
    seq: int


class Set(Message, tag="set"):
    sid: Sid
    max_hz: Hertz


class Unsub(Message, tag="unsub"):
    sid: Sid


class Ping(Message, tag="ping"):
    pass


Inbound = Hello | Sub | Ack | Set | Unsub | Ping


class Reply(msgspec.Struct, rename={"from_": "from"}):
    """Base of server messages."""


class Welcome(Reply, tag="welcome"):
    conn: str
    heartbeat_s: float
    limits: dict[str, int]


class Subscribed(Reply, tag="subscribed"):
    sid: Sid
    epoch: uuid.UUID
    head: int
    oldest: int
    """Seq of the oldest stored event."""
    mode: str
    """replay: batches follow from after + 1. snapshot: a snapshot follows, then the tail."""


class Snapshot(Reply, tag="snapshot"):
    sid: Sid
    seq: int
    href: str
    """Address of the state at `seq`; batches follow from seq + 1."""


class Batch(Reply, tag="batch"):
    """Every event of the topics with from <= seq <= to."""

    sid: Sid
    from_: int
    to: int
    events: list[msgspec.Raw]


class Gap(Reply, tag="gap"):
    sid: Sid
    from_: int
    to: int
    reason: str


class Status(Reply, tag="status"):
    """The run's row (`experiments.presentation.status`), at first and after each change; for users
    who may read its comments also the number of their changes (`comments_changed`)."""

    sid: Sid
    run: dict[str, Any]


class Drafts(Reply, tag="drafts"):
    """What nodes in flight have so far, as [{tree, node, agent, tokens, text}]. Not an event: it
    has no seq, replaces the one before, and is skipped where a newer one is there."""

    sid: Sid
    nodes: msgspec.Raw


class Error(Reply, tag="error"):
    """A refused request; the socket stays open."""

    code: str
    message: str
    sid: Sid | None = None


class Bye(Reply, tag="bye"):
    """Precedes the closing of the socket; `retry_ms` null: reconnecting does not help."""

    code: int
    reason: str
    retry_ms: int | None


class Pong(Reply, tag="pong"):
    """Response to a ping, also sent unrequested after a heartbeat interval of silence."""


LIMITS = {
    "frame_bytes": MAX_FRAME_BYTES,
    "subscriptions": MAX_SUBSCRIPTIONS,
    "messages_per_second": MAX_MESSAGES_PER_SECOND,
    "batch_events": BATCH_EVENTS,
    "replay_events": REPLAY_LIMIT,
}

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Inbound)


class Closing(Exception):
    """Ends the connection with a code, after sending the reason."""

    def __init__(self, code: Close, reason: str, retry_ms: int | None = None):
        self.bye = Bye(int(code), reason, retry_ms)
        super().__init__(reason)


class Refused(Exception):
    """Raised for a request that the server refuses; the connection continues."""

    def __init__(self, code: str, message: str, sid: Sid | None = None):
        self.error = Error(code, message, sid)
        super().__init__(message)


def encode(reply: Reply) -> str:
    return _encoder.encode(reply).decode()


def decode(frame: str) -> Inbound:
    """Decodes a client's frame. Raises `Refused` if it is no message of the protocol."""
    try:
        return _decoder.decode(frame)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise Refused("bad_message", str(error)) from None
