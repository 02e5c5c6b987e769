"""Parser of the result stream of a child, which a hostile program may have forged.

Invariant: frames count only if the whole stream is well formed, each call's frame occurs once
and in order, and each value is a literal; any other stream yields no value at all. No more than
`Bounds.read_chars` are read: to read and compare takes about a microsecond per character.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace

from engine.events.vocabulary import Verdict
from engine.sandbox.guest import wire
from engine.sandbox.guest.literals import LiteralError, read_literal
from engine.sandbox.guest.wire import FRAME
from engine.sandbox.host.job import Bounds, CallOutcome, Execution
from engine.sandbox.host.process import Ending

FAILURES = {
    wire.RUNTIME_ERROR: Verdict.RUNTIME_ERROR,
    wire.SYNTAX_ERROR: Verdict.SYNTAX_ERROR,
    wire.MEMORY_LIMIT: Verdict.MEMORY_LIMIT,
    wire.OUTPUT_LIMIT: Verdict.OUTPUT_LIMIT,
    wire.WRONG: Verdict.WRONG_ANSWER,
    wire.GONE: Verdict.RUNTIME_ERROR,
}
FORGED = CallOutcome(
    Verdict.RUNTIME_ERROR, error="the program wrote into its result channel", told=False
)


TOO_MUCH = CallOutcome(
    Verdict.OUTPUT_LIMIT, error="output limit exceeded by the results of all tests together"
)


class _Malformed(Exception):
    pass


def read_frames(stream: bytes, ending: Ending, calls: int, bounds: Bounds) -> Execution:
    """Returns one outcome per call, from the frames of a child and its ending."""
    if failure := _failed(ending):
        return _all(failure, calls, ending, bounds)
    try:
        frames = _frames(stream, calls, bounds.output_bytes, ending.ending != wire.EXITED)
        outcomes: list[CallOutcome] = []
        read = 0
        for kind, payload in frames:
            fits = kind != wire.VALUE or read + len(payload) <= bounds.read_chars
            outcomes.append(_outcome(kind, payload, bounds) if fits else TOO_MUCH)
            read += len(payload) if fits else 0
    except (_Malformed, LiteralError):
        # What was read of it has cost as much as if it were well formed.
        return replace(_all(FORGED, calls, ending, bounds), read_chars=len(stream))
    missing = (end_of(ending),) * (calls - len(outcomes))
    strains = (strain(ending, bounds),)
    return Execution((*outcomes, *missing), ending.seconds, strains, read)


def read_alone(streams: Sequence[bytes], ending: Ending, bounds: Bounds) -> Execution:
    """Returns one outcome per call that was made; if none was, that ending as the first outcome.

    A process that ended normally and yet made no call is a failure of the sandbox.
    """
    ran: list[Execution] = []
    read = 0
    for stream, its in zip(streams, ending.alone, strict=True):
        left = replace(bounds, read_chars=max(0, bounds.read_chars - read))
        ran.append(read_frames(stream, its, 1, left))
        read += ran[-1].read_chars
    if not ran:
        made_none = ending.ending == wire.EXITED and not ending.fault
        told = ending._replace(fault="no child") if made_none else ending
        return read_frames(b"", told, 1, bounds)
    return Execution(
        tuple(execution.outcomes[0] for execution in ran),
        ending.seconds,
        tuple(execution.strain for execution in ran),
        read,
    )


def read_script(stream: bytes, printed: bytes, ending: Ending, bounds: Bounds) -> Execution:
    """Returns the outcome of a script: its output, if it ended normally.

    A script that exits through os._exit(0) writes no frame, nor does one that runs to its end.
    """
    outcome = _failed(ending)
    if outcome is None and len(printed) > bounds.output_bytes:
        outcome = CallOutcome(Verdict.OUTPUT_LIMIT, error="output limit exceeded")
    if outcome is None and len(printed) > bounds.read_chars:
        outcome = TOO_MUCH
    if outcome is None and (ending.ending != wire.EXITED or ending.code != 0):
        outcome = end_of(ending)
    if outcome is None:
        try:
            frames = _frames(stream, 1, bounds.output_bytes, False)
            failed = [_outcome(*frame, bounds) for frame in frames if frame[0] != wire.VALUE]
            text = printed.decode("utf-8", "surrogateescape")
            outcome = failed[0] if failed else CallOutcome(None, text)
        except (_Malformed, LiteralError):
            outcome = FORGED
    read = len(printed) if outcome.verdict is None else 0
    return replace(_all(outcome, 1, ending, bounds), read_chars=read)


def read_trial(
    stream: bytes, judged: Ending, answered: Ending, codes: int, bounds: Bounds
) -> Execution:
    """Returns one outcome per code test, from the frames of the judge and both endings."""
    failure = _failed(judged) or _failed(answered)
    if failure:
        return _all(failure, codes, judged, bounds)
    try:
        frames = _frames(stream, codes, bounds.output_bytes, judged.ending != wire.EXITED)
        outcomes = [
            end_of(answered) if kind == wire.GONE else _outcome(kind, payload, bounds)
            for kind, payload in frames
        ]
    except (_Malformed, LiteralError):
        return _all(FORGED, codes, judged, bounds)
    missing = (end_of(judged),) * (codes - len(outcomes))
    most = max(strain(judged, bounds), strain(answered, bounds))
    return Execution((*outcomes, *missing), judged.seconds, (most,))


def strain(ending: Ending, bounds: Bounds) -> float:
    """Returns the share of the time limit that was used, the larger of wall and CPU time."""
    return max(ending.seconds / bounds.wall_seconds, ending.cpu_seconds / bounds.cpu_seconds)


def end_of(ending: Ending) -> CallOutcome:
    """Returns the outcome of tests without a frame."""
    if ending.ending == wire.OUT_OF_TIME:
        return CallOutcome(Verdict.TIME_LIMIT, error="time limit exceeded", told=False)
    if ending.ending == wire.SIGNALLED:
        name = signal.strsignal(-ending.code) or f"signal {-ending.code}"
        return CallOutcome(Verdict.KILLED, error=f"killed: {name}", told=False)
    error = f"ended with exit status {ending.code}, no result"
    return CallOutcome(Verdict.RUNTIME_ERROR, error=error, told=False)


def _all(outcome: CallOutcome, tests: int, ending: Ending, bounds: Bounds) -> Execution:
    return Execution((outcome,) * tests, ending.seconds, (strain(ending, bounds),))


def _failed(ending: Ending) -> CallOutcome | None:
    """Returns a failure of the sandbox if the child did not reach the program, or was killed.

    The child reports its walls before the program is compiled, through a pipe that no program has.
    And no program can kill itself with SIGKILL: that was the kernel, out of memory, or a person.
    """
    if ending.ending == wire.SIGNALLED and ending.code == -signal.SIGKILL:
        error = "killed from outside; does this machine have memory for all workers?"
        return CallOutcome(Verdict.SANDBOX_FAILURE, error=error)
    if not ending.fault or ending.ending == wire.OUT_OF_TIME:
        return None
    error = f"no walls: {ending.fault}, the child ended with {ending.code}"[:200]
    return CallOutcome(Verdict.SANDBOX_FAILURE, error=error)


def _frames(
    stream: bytes, calls: int, output_bytes: int, may_be_torn: bool
) -> list[tuple[int, bytes]]:
    """Returns kind and payload of every frame."""
    frames: list[tuple[int, bytes]] = []
    start = 0
    while start < len(stream):
        header, kind, length, payload = start + FRAME.size, 0, 0, b""
        if header <= len(stream):
            index, kind, length = FRAME.unpack_from(stream, start)
            if index != len(frames) or index >= calls or length > wire.max_payload(output_bytes):
                raise _Malformed
            payload = stream[header : header + length]
        if header > len(stream) or len(payload) < length:
            if may_be_torn:  # the child was killed while it wrote
                break
            raise _Malformed
        frames.append((kind, payload))
        start = header + length
    return frames


def _outcome(kind: int, payload: bytes, bounds: Bounds) -> CallOutcome:
    if kind == wire.VALUE:
        try:
            text = payload.decode("utf-8")
        except UnicodeDecodeError:  # an honest child escapes such characters
            raise _Malformed from None
        if len(text) > bounds.output_bytes:  # an honest child would have reported the limit
            raise _Malformed
        return CallOutcome(None, read_literal(text))
    text = payload[: 4 * wire.MAX_ERROR_CHARS].decode("utf-8", "replace")
    loaded = kind < wire.NOT_LOADED
    kind -= 0 if loaded else wire.NOT_LOADED
    if kind not in FAILURES:
        raise _Malformed
    return CallOutcome(FAILURES[kind], None, _harmless(text[: wire.MAX_ERROR_CHARS]), loaded)


def _harmless(text: str) -> str:
    """Returns text for logs, databases and pages, with unprintable characters escaped."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
