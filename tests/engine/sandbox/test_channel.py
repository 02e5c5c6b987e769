"""Tests that a child's output is accepted only if it is exactly what an honest child sends."""

import struct
import time
from contextlib import suppress

import pytest

from engine.events.vocabulary import Verdict
from engine.sandbox.guest.literals import (
    LiteralError,
    LiteralTooLong,
    from_literal,
    read_literal,
    to_literal,
)
from engine.sandbox.guest.wire import (
    EXITED,
    FRAME,
    NOT_LOADED,
    OUT_OF_TIME,
    RUNTIME_ERROR,
    SIGNALLED,
    SYNTAX_ERROR,
    VALUE,
    max_payload,
)
from engine.sandbox.host.job import Bounds
from engine.sandbox.host.process import ChildExit
from engine.sandbox.host.stream import read_frames

BOUNDS = Bounds(1.0, 2.0, 1 << 26, 1000)


def frame(index, text, kind=VALUE):
    data = text if isinstance(text, bytes) else text.encode()
    return FRAME.pack(index, kind, len(data)) + data


def outcomes(stream, calls=2, ending=EXITED, code=0, fault=""):
    execution = read_frames(stream, ChildExit(ending, code, 0.5, 0.25, fault), calls, BOUNDS)
    assert len(execution.outcomes) == calls
    assert (execution.seconds, execution.strain) == (0.5, 0.25)
    return execution.outcomes


def verdicts(*arguments, **keywords):
    return [outcome.verdict for outcome in outcomes(*arguments, **keywords)]


def test_a_whole_stream_gives_its_values():
    first, second = outcomes(frame(0, "[1, 2]") + frame(1, "E: no", RUNTIME_ERROR))
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
        frame(0, "0x" + "f" * 400 + "+1j"),
        frame(0, "'" + "x" * 999 + "'"),
        b"PASSED",
    ],
)
def test_a_malformed_stream_gives_no_value_at_all(stream):
    assert verdicts(stream) == [Verdict.RUNTIME_ERROR] * 2


def test_a_missing_frame_is_named_by_the_end_of_the_child():
    one = frame(0, "1")
    assert verdicts(one) == [None, Verdict.RUNTIME_ERROR]
    assert verdicts(one, ending=OUT_OF_TIME, code=-9) == [None, Verdict.TIME_LIMIT]
    assert verdicts(one, ending=SIGNALLED, code=-11) == [None, Verdict.KILLED]


def test_a_frame_torn_by_the_kill_does_not_spoil_the_ones_before():
    torn = frame(0, "1") + frame(1, "12345")[:-2]
    assert verdicts(torn, ending=OUT_OF_TIME, code=-9) == [None, Verdict.TIME_LIMIT]


def test_a_child_that_never_got_ready_is_a_failure_of_the_sandbox():
    problem = "setuid: not permitted"
    assert verdicts(b"", fault=problem) == [Verdict.SANDBOX_FAILURE] * 2
    assert verdicts(frame(0, "1"), fault=problem) == [Verdict.SANDBOX_FAILURE] * 2


def test_a_failure_says_whether_it_came_before_the_first_call():
    stream = frame(0, "E", SYNTAX_ERROR + NOT_LOADED) + frame(1, "E", SYNTAX_ERROR)
    assert [(o.verdict, o.loaded) for o in outcomes(stream)] == [
        (Verdict.SYNTAX_ERROR, False),
        (Verdict.SYNTAX_ERROR, True),
    ]
    assert verdicts(frame(0, "1", VALUE + NOT_LOADED)) == [Verdict.RUNTIME_ERROR] * 2


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -7, 10**5000, -(10**5000), 1.5, -0.0, 1e300, float("inf"), 2 - 3j, -1j,
        "", "a\0\n'\"\\é\ud800", b"\x00\xff", [], (), (1,), set(), {1}, frozenset(),
        frozenset({1, 2}), {}, {(1, 2): [{"k": {None}}]}, [[[[1]]]],
        [1, -2, 30], [2**62, 0], [1 - 2**62, 2**62 - 1], [10**1298], [-(10**1299), 7], [10**1300],
        [True, 1], [1, [2, [3, 4]], (5,)], (6, 7), [1, 2.0], [0, None],
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_plain_values_survive_the_channel(value):
    text = to_literal(value)
    text.encode()
    for back in (from_literal(text), read_literal(text)):
        assert type(back) is type(value)
        assert back == value


@pytest.mark.parametrize(
    "text",
    ["", "x", "...", "f'{1}'", "[*[1]]", "{**{}}", "1 + 1", "-'a'", "not 1", "[i for i in 'a']",
     "set([1])", "frozenset(x=1)", "lambda: 0", "().__class__", "{[]}", "1\n2", "nan.real",
     "-" * 100_000 + "1", "(" * 100_000, "1\0", "0x" + "f" * 400 + "+1j"],
    ids=lambda text: text[:9],
)  # fmt: skip
def test_text_that_is_no_plain_literal_is_refused(text):
    with pytest.raises(LiteralError):
        from_literal(text)


@pytest.mark.parametrize(
    "text",
    ["", "x", "[1,,2]", "[1", "[1, ]", "(1)", "(1,,)", "(1, 2, )", "{1: 2, 3}", "{1, 2: 3}", "[,]",
     "{,}", "frozenset({})", "frozenset({1: 2})", "1 ", " 1", "[1 2]", "1_0", "0b1", "'a' 'b'",
     "r'a'", "'\\x'", "b'\xe9'", "--1", "+1", "0x", "((1j)", "\u0661", "1  # one", "{[]}", "1\0",
     "9" * 5000, "0x" + "f" * 400 + "+1j", "[" * 101 + "]" * 101,
     "[" * 101 + "1" + "]" * 101, "[1, 2 ]", "[1 , 2]", "[--1]", "[1, 2,]",
     "[" + "9" * 1301 + "]", "[\u0661]", "f'{1}'", "nan.real", "()()"],
    ids=lambda text: text[:9],
)  # fmt: skip
def test_of_a_stranger_only_what_an_honest_child_writes_is_read(text):
    with pytest.raises(LiteralError):
        read_literal(text)


def test_the_longest_frames_are_read_fast():
    for text in ("[" + "1, " * 300_000 + "1]", "'" + "\\n" * 400_000 + "'", "'" + "\\" * 999_999):
        started = time.process_time()
        with suppress(LiteralError):
            read_literal(text)
        assert time.process_time() - started < 3


def test_control_characters_of_an_error_are_escaped():
    text = "E: \x1b[2J\0\r\u202e\x9b é\n  program.py"
    first, _ = outcomes(frame(0, text, RUNTIME_ERROR))
    assert first.error == "E: \\x1b[2J\\x00\\r\\u202e\\x9b é\n  program.py"


def test_a_set_that_was_made_to_take_long_is_refused_at_once():
    same_hash = ", ".join(str(n * (2**61 - 1)) for n in range(1, 20_000))
    diluted = ", ".join(map(str, range(30_000))) + ", " + same_hash
    started = time.process_time()
    for text in (
        f"{{{same_hash}}}",
        "{" + same_hash.replace(",", ": 0,") + ": 0}",
        f"{{{diluted}}}",
    ):
        for read in (from_literal, read_literal):
            with pytest.raises(LiteralError, match="equal hashes"):
                read(text)
    assert time.process_time() - started < 4
    assert len(from_literal("{" + ", ".join(map(str, range(5000))) + "}")) == 5000


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
        to_literal([1, 2, 345], 10)
    with pytest.raises(LiteralTooLong):
        to_literal(1 << (1 << 27), 1000)
