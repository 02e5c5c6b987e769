"""What comes out of a child is believed only where it is exactly what an honest child sends."""

import struct

import pytest

from engine.events import Verdict
from engine.problems.literals import LiteralError, LiteralTooLong, from_literal, to_literal
from engine.sandbox.stream import read_reply
from engine.sandbox.wire import (
    EXITED,
    FRAME,
    HEAD,
    OUT_OF_TIME,
    READY,
    RUNTIME_ERROR,
    SIGNALLED,
    VALUE,
    max_payload,
)


def frame(index, text, kind=VALUE):
    data = text if isinstance(text, bytes) else text.encode()
    return FRAME.pack(index, kind, len(data)) + data


def reply(stream, ending=EXITED, code=0):
    return HEAD.pack(ending, code, 0.5) + stream


def verdicts(stream, calls=2, ending=EXITED, code=0):
    execution = read_reply(reply(stream, ending, code), calls, 1000)
    assert len(execution.outcomes) == calls
    return [outcome.verdict for outcome in execution.outcomes]


def test_a_whole_stream_gives_its_values():
    stream = READY + frame(0, "[1, 2]") + frame(1, "E: no", RUNTIME_ERROR)
    first, second = read_reply(reply(stream), 2, 1000).outcomes
    assert (first.verdict, first.value) == (None, [1, 2])
    assert (second.verdict, second.error) == (Verdict.RUNTIME_ERROR, "E: no")


@pytest.mark.parametrize(
    "stream",
    [
        frame(0, "1") + frame(0, "1"),
        frame(1, "1") + frame(0, "1"),
        frame(0, "1") + frame(1, "1") + frame(2, "1"),
        frame(0, "1") + frame(1, "1") + b"x",
        frame(0, "1") + frame(1, "1", kind=9),
        frame(0, "1") + frame(1, "__import__('os')"),
        frame(0, "1") + frame(1, "1 if 1 else 2"),
        frame(0, "1") + frame(1, b"\xff\xfe"),
        frame(0, "1") + FRAME.pack(1, VALUE, max_payload(1000) + 1),
        frame(0, "1") + FRAME.pack(1, VALUE, 5) + b"1",
        frame(0, "[" * 500 + "]" * 500),
        b"PASSED",
    ],
)
def test_a_malformed_stream_gives_no_value_at_all(stream):
    assert verdicts(READY + stream) == [Verdict.RUNTIME_ERROR] * 2


def test_a_missing_frame_is_named_by_the_end_of_the_child():
    one = READY + frame(0, "1")
    assert verdicts(one) == [None, Verdict.RUNTIME_ERROR]
    assert verdicts(one, ending=OUT_OF_TIME, code=-9) == [None, Verdict.TIME_LIMIT]
    assert verdicts(one, ending=SIGNALLED, code=-11) == [None, Verdict.KILLED]


def test_a_frame_torn_by_the_kill_does_not_spoil_the_ones_before():
    torn = READY + frame(0, "1") + frame(1, "12345")[:-2]
    assert verdicts(torn, ending=OUT_OF_TIME, code=-9) == [None, Verdict.TIME_LIMIT]


def test_a_child_that_never_got_ready_is_a_failure_of_the_sandbox():
    assert verdicts(b"setuid: not permitted") == [Verdict.SANDBOX_FAILURE] * 2
    assert verdicts(b"") == [Verdict.SANDBOX_FAILURE] * 2


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -7, 10**5000, -(10**5000), 1.5, -0.0, 1e300, float("inf"), 2 - 3j, -1j,
        "", "a\0\n'\"\\é\ud800", b"\x00\xff", [], (), (1,), set(), {1}, frozenset(),
        frozenset({1, 2}), {}, {(1, 2): [{"k": {None}}]}, [[[[1]]]],
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_plain_values_survive_the_channel(value):
    text = to_literal(value)
    text.encode()
    back = from_literal(text)
    assert type(back) is type(value)
    assert back == value


@pytest.mark.parametrize(
    "text",
    ["", "x", "...", "f'{1}'", "[*[1]]", "{**{}}", "1 + 1", "-'a'", "not 1", "[i for i in 'a']",
     "set([1])", "frozenset(x=1)", "lambda: 0", "().__class__", "{[]}", "1\n2", "nan.real",
     "-" * 100_000 + "1", "(" * 100_000, "1\0"],
    ids=lambda text: text[:9],
)  # fmt: skip
def test_what_is_no_plain_literal_is_refused(text):
    with pytest.raises(LiteralError):
        from_literal(text)


def test_values_that_are_not_plain_or_too_deep_are_refused():
    cyclic = []
    cyclic.append(cyclic)
    for value in (object(), int, struct, type("Sub", (int,), {})(1), iter([]), ..., cyclic):
        with pytest.raises(LiteralError):
            to_literal([value])


def test_length_is_limited_before_the_text_is_made():
    for value in ("a" * 11, [1] * 5, 1 << 200, {1: "aaaaaaaa"}, [set()] * 2):
        with pytest.raises(LiteralTooLong):
            to_literal(value, 10)
    assert to_literal([1, 2, 34], 10) == "[1, 2, 34]"
    with pytest.raises(LiteralTooLong):
        to_literal(1 << (1 << 27), 1000)
