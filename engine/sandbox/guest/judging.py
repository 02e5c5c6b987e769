"""Judge: runs code tests whose calls go to the program in another child.

The program runs in another process, behind its own walls, and is reached through two pipes; a
response is a plain value or the name of a built-in exception, so nothing that a program made is
ever executed here. Standard library only, imported by the zygote before it forks.

Invariant: a test passes only if its code ran to its end and the program's process neither
ended, nor broke a limit or the protocol meanwhile, however the code handled the exception.
"""

import builtins
import marshal
import random
from contextlib import suppress
from typing import Any, NoReturn

from child import INCOMING, OUTGOING, STREAM, read_exactly, send, write
from failures import PRELUDE_NAME, TOO_MUCH_OUTPUT, describe
from literals import LiteralError, read_literal
from objects import TEST_MODULE, Names
from shapes import made
from streams import BoundedOutput, silence
from wire import (
    FRAME,
    MEMORY_LIMIT,
    NOT_LOADED,
    OUTPUT_LIMIT,
    PROGRAM_ENDED,
    RAISED,
    REQUEST,
    RUNTIME_ERROR,
    SHAPED,
    SYNTAX_ERROR,
    VALUE,
    WRONG,
    max_payload,
)

CODE_NAME = "test.py"
_FAILURES = {RUNTIME_ERROR, SYNTAX_ERROR, MEMORY_LIMIT, OUTPUT_LIMIT}
# They control the interpreter: in a loop of the judge, one would end the loop, not the test.
_STEERING = {"StopIteration", "StopAsyncIteration", "GeneratorExit", "BaseExceptionGroup"}


class Ended(BaseException):
    """The program can no longer respond."""


class Program:
    """Proxy of the program. `failure`: kind and text of the failure that ended it for good."""

    def __init__(self, limit: int):
        self.limit = limit
        self.calls = 0
        self.failure: tuple[int, str] | None = None
        self.raised: BaseException | None = None
        self.raised_text = ""
        self.names = Names({})

    def load(self) -> None:
        """Waits until the program is loaded; sets `failure` and raises Ended if it cannot be."""
        self.take()

    def call(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if self.failure:
            raise Ended
        packed = self.packed((arguments, keywords))
        self.calls += 1
        try:
            write(OUTGOING, REQUEST.pack(len(packed)) + packed)
        except BrokenPipeError:
            self.end(PROGRAM_ENDED, "")
        kind, text = self.take()
        if kind == VALUE:
            return self.plain(text)
        parts = self.plain(text)
        if kind == SHAPED:
            return self.shaped(parts)
        if type(parts) is not tuple or [type(part) for part in parts] != [str] * 3:
            self.broken()
        name, message, self.raised_text = parts
        self.raised = rebuilt(name, message)
        raise self.raised

    def packed(self, values: Any) -> bytes:
        """Returns the bytes to send; searches the values for built-in classes only if something is
        not plain, so that large arguments are not traversed."""
        try:
            return marshal.dumps(self.names.entries(values), 2)
        except ValueError:
            with suppress(ValueError):
                return marshal.dumps(self.names.with_classes(values), 2)
        raise TypeError("only plain values can be passed to the program")

    def take(self) -> tuple[int, str]:
        """Returns the next response, VALUE or RAISED; any other ends the program (raises Ended)."""
        head = read_exactly(INCOMING, FRAME.size)
        if head is None:
            self.end(PROGRAM_ENDED, "")
        index, kind, length = FRAME.unpack(head)
        if index != self.calls or length > max_payload(self.limit):
            self.broken()
        payload = read_exactly(INCOMING, length)
        if payload is None:
            self.end(PROGRAM_ENDED, "")
        text = payload.decode("utf-8", "replace")
        if kind in _FAILURES or kind - NOT_LOADED in _FAILURES:
            self.end(kind, text)
        if kind not in (VALUE, RAISED, SHAPED):
            self.broken()
        return kind, text

    def plain(self, text: str) -> Any:
        try:
            return read_literal(text)
        except LiteralError:
            self.broken()

    def shaped(self, parts: Any) -> Any:
        # A program may write anything: no exception of the library's classes is the test's own.
        with suppress(Exception):
            return made(parts, self.too_long)
        self.broken()

    def too_long(self) -> NoReturn:
        self.end(OUTPUT_LIMIT, TOO_MUCH_OUTPUT)

    def broken(self) -> NoReturn:
        self.end(RUNTIME_ERROR, "the program wrote into its result channel")

    def end(self, kind: int, text: str) -> NoReturn:
        self.failure = kind, text
        raise Ended


def rebuilt(name: str, message: str) -> BaseException:
    """Returns the exception of a program, as the built-in of the same name."""
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, BaseException) and name not in _STEERING:
        try:
            return kind(message)
        except TypeError:  # it needs more than a message
            return next(base for base in kind.__mro__[1:] if base in _SIMPLE)(message)
    return RuntimeError(f"{name}: {message}")


_SIMPLE = {ValueError, Exception, BaseException}


def judge(job: bytes) -> None:
    """Runs every code test in its own namespace and writes its frame."""
    prelude, codes, entry_point, limit = marshal.loads(job)  # nosec B302
    output = silence(limit)
    program = Program(limit)
    with suppress(Ended):
        program.load()
    for index, code in enumerate(codes):
        send(STREAM, index, *verdict(program, prelude, code, entry_point, output))


def verdict(
    program: Program, prelude: str, code: str, entry_point: str, output: BoundedOutput
) -> tuple[int, str]:
    """Runs one test; returns kind and text of its frame, VALUE if it passed."""
    program.raised = error = None
    output.room = output.limit
    random.seed(0)
    if not program.failure:
        try:
            run_code(program, prelude, code, entry_point)
        except BaseException as caught:
            error = caught
    if program.failure:
        return program.failure
    if error is None and program.names.used and not program.names.sent:
        return WRONG, "the test names a class of the program and passes no object of it"
    if error is None:
        return VALUE, "True"
    if error is program.raised:
        return RUNTIME_ERROR, program.raised_text
    return WRONG, describe(error)[1]


def run_code(program: Program, prelude: str, code: str, entry_point: str) -> None:
    """Executes prelude and code of a test in a new namespace that has the proxy of the program."""
    program.names = names = Names({"__name__": TEST_MODULE})
    if prelude:
        exec(compile(prelude, PRELUDE_NAME, "exec", dont_inherit=True), names)  # nosec B102
    bind(program, entry_point, names)
    exec(compile(code, CODE_NAME, "exec", dont_inherit=True), names)  # nosec B102


def bind(program: Program, entry_point: str, names: dict[str, Any]) -> None:
    """Binds the proxy to `candidate`, and to the entry point's own name."""

    def candidate(*arguments: Any, **keywords: Any) -> Any:
        return program.call(arguments, keywords)

    owner, _, method = entry_point.rpartition(".")
    candidate.__name__ = method
    names["candidate"] = candidate
    names[owner or method] = (
        type(owner, (), {method: staticmethod(candidate)}) if owner else candidate
    )
