"""Reads what a child sent, which a hostile program may have written.

Invariant: frames count only if the whole stream is well formed, each call's frame comes once
and in order, and each value is a literal; a stream that is not so gives no value at all.
"""

from __future__ import annotations

import signal

from engine.events import Verdict
from engine.problems.literals import LiteralError, from_literal
from engine.sandbox import wire
from engine.sandbox.job import CallOutcome, Execution
from engine.sandbox.wire import FRAME, HEAD, READY

FAILURES = {
    wire.RUNTIME_ERROR: Verdict.RUNTIME_ERROR,
    wire.SYNTAX_ERROR: Verdict.SYNTAX_ERROR,
    wire.MEMORY_LIMIT: Verdict.MEMORY_LIMIT,
    wire.OUTPUT_LIMIT: Verdict.OUTPUT_LIMIT,
}


class _Malformed(Exception):
    pass


def read_reply(reply: bytes, calls: int, output_bytes: int) -> Execution:
    """One outcome per call from a zygote's reply: HEAD, then the child's stream."""
    ending, code, seconds = HEAD.unpack_from(reply)
    stream = reply[HEAD.size :]
    if stream[:1] != READY and ending != wire.OUT_OF_TIME:
        # The first byte is written before the program is compiled: no program can withhold it.
        reason = stream.decode("utf-8", "replace") or f"the child ended with {code}"
        failure = CallOutcome(Verdict.SANDBOX_FAILURE, error=f"no walls: {reason}"[:200])
        return Execution((failure,) * calls, seconds)
    try:
        outcomes = _frames(stream[1:], calls, output_bytes, ending != wire.EXITED)
    except (_Malformed, LiteralError):
        error = "the program wrote into its result channel"
        return Execution((CallOutcome(Verdict.RUNTIME_ERROR, error=error),) * calls, seconds)
    missing = _missing(ending, code)
    return Execution((*outcomes, *(missing,) * (calls - len(outcomes))), seconds)


def _frames(stream: bytes, calls: int, output_bytes: int, may_be_torn: bool) -> list[CallOutcome]:
    outcomes: list[CallOutcome] = []
    start = 0
    while start < len(stream):
        header, payload = start + FRAME.size, b""
        if header <= len(stream):
            index, kind, length = FRAME.unpack_from(stream, start)
            if index != len(outcomes) or index >= calls or length > wire.max_payload(output_bytes):
                raise _Malformed
            payload = stream[header : header + length]
        if header > len(stream) or len(payload) < length:
            if may_be_torn:  # it was killed while it wrote
                break
            raise _Malformed
        outcomes.append(_outcome(kind, payload))
        start = header + length
    return outcomes


def _outcome(kind: int, payload: bytes) -> CallOutcome:
    text = payload.decode("utf-8", "replace")
    if kind == wire.VALUE:
        return CallOutcome(None, from_literal(text))
    if kind not in FAILURES:
        raise _Malformed
    return CallOutcome(FAILURES[kind], error=text[: wire.MAX_ERROR_CHARS])


def _missing(ending: int, code: int) -> CallOutcome:
    """The outcome of calls for which no frame came."""
    if ending == wire.OUT_OF_TIME:
        return CallOutcome(Verdict.TIME_LIMIT, error="time limit exceeded")
    if ending == wire.TOO_MUCH_OUTPUT:
        return CallOutcome(Verdict.OUTPUT_LIMIT, error="output limit exceeded")
    if ending == wire.SIGNALLED:
        name = signal.strsignal(-code) or f"signal {-code}"
        return CallOutcome(Verdict.KILLED, error=f"killed: {name}")
    return CallOutcome(Verdict.RUNTIME_ERROR, error=f"ended with exit status {code}, no result")
