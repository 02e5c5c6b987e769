"""Parser of the result stream of a child, which a hostile program may have forged.

Invariant: frames count only if the whole stream is well formed, each call's frame occurs once
and in order, and each value is a literal; any other stream yields no value at all. No more than
`Bounds.read_chars` are read: to read and compare takes about a microsecond per character.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import replace

from engine.config.printable import printable
from engine.events.vocabulary import Verdict
from engine.sandbox.guest import wire
from engine.sandbox.guest.literals import LiteralError, read_literal
from engine.sandbox.guest.wire import FRAME
from engine.sandbox.host.job import Bounds, CallOutcome, Execution, TraceFrame
from engine.sandbox.host.process import ChildExit

FAILURES = {
    wire.RUNTIME_ERROR: Verdict.RUNTIME_ERROR,
    wire.SYNTAX_ERROR: Verdict.SYNTAX_ERROR,
    wire.MEMORY_LIMIT: Verdict.MEMORY_LIMIT,
    wire.OUTPUT_LIMIT: Verdict.OUTPUT_LIMIT,
    wire.WRONG: Verdict.WRONG_ANSWER,
    wire.PROGRAM_ENDED: Verdict.RUNTIME_ERROR,
}
FORGED = CallOutcome(
    Verdict.RUNTIME_ERROR, error="the program wrote into its result channel", reported=False
)


TOO_MUCH = CallOutcome(
    Verdict.OUTPUT_LIMIT, error="output limit exceeded by the results of all tests together"
)


class _Malformed(Exception):
    pass


def read_frames(stream: bytes, child_exit: ChildExit, calls: int, bounds: Bounds) -> Execution:
    """Returns one outcome per call, from the frames of a child and its exit."""
    if failure := _sandbox_failure(child_exit):
        return _same_for_all(failure, calls, child_exit, bounds)
    try:
        frames = _frames(stream, calls, bounds.output_bytes, child_exit.reason != wire.EXITED)
        outcomes: list[CallOutcome] = []
        read = 0
        for kind, payload in frames:
            fits = kind != wire.VALUE or read + len(payload) <= bounds.read_chars
            outcomes.append(_outcome(kind, payload, bounds) if fits else TOO_MUCH)
            read += len(payload) if fits else 0
    except (_Malformed, LiteralError):
        # What was read of it has cost as much as if it were well formed.
        return replace(_same_for_all(FORGED, calls, child_exit, bounds), read_chars=len(stream))
    missing = (outcome_of_exit(child_exit),) * (calls - len(outcomes))
    strains = (strain(child_exit, bounds),)
    return Execution((*outcomes, *missing), child_exit.seconds, strains, read)


def read_forked_calls(streams: Sequence[bytes], child_exit: ChildExit, bounds: Bounds) -> Execution:
    """Returns one outcome per call that was made; if none was, the exit as the first outcome.

    A process that ended normally and yet made no call is a failure of the sandbox.
    """
    ran: list[Execution] = []
    read = 0
    for stream, child in zip(streams, child_exit.children, strict=True):
        left = replace(bounds, read_chars=max(0, bounds.read_chars - read))
        ran.append(read_frames(stream, child, 1, left))
        read += ran[-1].read_chars
    if not ran:
        made_none = child_exit.reason == wire.EXITED and not child_exit.setup_error
        failed = child_exit._replace(setup_error="no child") if made_none else child_exit
        return read_frames(b"", failed, 1, bounds)
    return Execution(
        tuple(execution.outcomes[0] for execution in ran),
        child_exit.seconds,
        tuple(execution.strain for execution in ran),
        read,
    )


def read_script(stream: bytes, printed: bytes, child_exit: ChildExit, bounds: Bounds) -> Execution:
    """Returns the outcome of a script: its output, if it ended normally.

    A script that exits through os._exit(0) writes no frame, nor does one that runs to its end.
    """
    outcome = _sandbox_failure(child_exit)
    if outcome is None and len(printed) > bounds.output_bytes:
        outcome = CallOutcome(Verdict.OUTPUT_LIMIT, error="output limit exceeded")
    if outcome is None and len(printed) > bounds.read_chars:
        outcome = TOO_MUCH
    if outcome is None and (child_exit.reason != wire.EXITED or child_exit.code != 0):
        outcome = outcome_of_exit(child_exit)
    if outcome is None:
        try:
            frames = _frames(stream, 1, bounds.output_bytes, False)
            failed = [_outcome(*frame, bounds) for frame in frames if frame[0] != wire.VALUE]
            text = printed.decode("utf-8", "surrogateescape")
            outcome = failed[0] if failed else CallOutcome(None, text)
        except (_Malformed, LiteralError):
            outcome = FORGED
    read = len(printed) if outcome.verdict is None else 0
    return replace(_same_for_all(outcome, 1, child_exit, bounds), read_chars=read)


def read_trial(
    stream: bytes, judged: ChildExit, answered: ChildExit, codes: int, bounds: Bounds
) -> Execution:
    """Returns one outcome per code test, from the frames of the judge and both exits."""
    failure = _sandbox_failure(judged) or _sandbox_failure(answered)
    if failure:
        return _same_for_all(failure, codes, judged, bounds)
    try:
        frames = _frames(stream, codes, bounds.output_bytes, judged.reason != wire.EXITED)
        outcomes = [
            outcome_of_exit(answered)
            if kind == wire.PROGRAM_ENDED
            else _outcome(kind, payload, bounds)
            for kind, payload in frames
        ]
    except (_Malformed, LiteralError):
        return _same_for_all(FORGED, codes, judged, bounds)
    missing = (outcome_of_exit(judged),) * (codes - len(outcomes))
    most = max(strain(judged, bounds), strain(answered, bounds))
    return Execution((*outcomes, *missing), judged.seconds, (most,))


def strain(child_exit: ChildExit, bounds: Bounds) -> float:
    """Returns the share of the time limit that was used, the larger of wall and CPU time."""
    return max(
        child_exit.seconds / bounds.wall_seconds, child_exit.cpu_seconds / bounds.cpu_seconds
    )


def outcome_of_exit(child_exit: ChildExit) -> CallOutcome:
    """Returns the outcome of tests without a frame."""
    if child_exit.reason == wire.OUT_OF_TIME:
        return CallOutcome(Verdict.TIME_LIMIT, error="time limit exceeded", reported=False)
    if child_exit.reason == wire.SIGNALLED:
        name = signal.strsignal(-child_exit.code) or f"signal {-child_exit.code}"
        return CallOutcome(Verdict.KILLED, error=f"killed: {name}", reported=False)
    error = f"ended with exit status {child_exit.code}, no result"
    return CallOutcome(Verdict.RUNTIME_ERROR, error=error, reported=False)


def _same_for_all(
    outcome: CallOutcome, tests: int, child_exit: ChildExit, bounds: Bounds
) -> Execution:
    return Execution((outcome,) * tests, child_exit.seconds, (strain(child_exit, bounds),))


def _sandbox_failure(child_exit: ChildExit) -> CallOutcome | None:
    """Returns a failure of the sandbox if the child did not reach the program, or was killed.

    The child reports its walls before the program is compiled, through a pipe that no program has.
    And no program can kill itself with SIGKILL: that was the kernel, out of memory, or a person.
    """
    if child_exit.reason == wire.SIGNALLED and child_exit.code == -signal.SIGKILL:
        error = "killed from outside; does this machine have memory for all workers?"
        return CallOutcome(Verdict.SANDBOX_FAILURE, error=error)
    if not child_exit.setup_error or child_exit.reason == wire.OUT_OF_TIME:
        return None
    error = f"no walls: {child_exit.setup_error}, the child ended with {child_exit.code}"[:200]
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
    most = 4 * (wire.MAX_ERROR_CHARS + 1 + wire.MAX_TRACE_CHARS)
    text, mark, trace = payload[:most].decode("utf-8", "replace").rpartition(wire.TRACE)
    text = text if mark else trace
    loaded = kind < wire.NOT_LOADED
    kind -= 0 if loaded else wire.NOT_LOADED
    if kind not in FAILURES:
        raise _Malformed
    error = printable(text[: wire.MAX_ERROR_CHARS])
    frames = _trace(trace) if mark else ()
    return CallOutcome(FAILURES[kind], None, error, loaded, frames=frames)


_TRACE_LINE = re.compile(rf"([1-9][0-9]{{0,8}}) (.{{1,{wire.MAX_NAME_CHARS}}})")


def _trace(text: str) -> tuple[TraceFrame, ...]:
    """Returns the frames of a traceback; none if the text is not well formed."""
    lines = [_TRACE_LINE.fullmatch(line) for line in text.split("\n")]
    if len(lines) > wire.MOST_FRAMES or not all(lines):
        return ()
    return tuple(TraceFrame(int(line[1]), printable(line[2])) for line in lines if line)
