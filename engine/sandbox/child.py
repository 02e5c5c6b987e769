"""What a child does: run one program and send one frame per call.

Standard library only, imported by the zygote before it forks, so that a child imports nothing.

Invariant: a frame claims a value or names a failure; it never says whether a value is right.
"""

import marshal
import os
import random
import resource
import sys
import types
from typing import Any

from literals import LiteralError, LiteralTooLong, to_literal
from wire import (
    FRAME,
    MAX_ERROR_CHARS,
    MEMORY_LIMIT,
    OUTPUT_LIMIT,
    RUNTIME_ERROR,
    SYNTAX_ERROR,
    VALUE,
)

FILE_NAME = "program.py"


class OutputLimit(BaseException):
    """The program printed more than it may."""


class BoundedOutput:
    """Stands for stdout and stderr: counts what is printed, keeps nothing."""

    encoding = "utf-8"

    def __init__(self, limit: int):
        self.limit = limit
        self.room = limit

    def write(self, text: str) -> int:
        self.room -= len(text)
        if self.room < 0:
            raise OutputLimit
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def answer(program: str, entry_point: str, calls: list[bytes], limit: int, stream: int) -> None:
    """Make every call, each with arguments of its own, and send its frame."""
    sys.stdout = sys.stderr = output = BoundedOutput(limit)
    random.seed(0)  # a fork seeds it anew; the same program shall give the same answer again
    function, failure = load(program, entry_point)
    for index, arguments in enumerate(calls):
        output.room = limit
        kind, text = failure or call(function, arguments, limit)
        payload = text.encode("utf-8", "backslashreplace")
        send(stream, FRAME.pack(index, kind, len(payload)) + payload)


def load(program: str, entry_point: str) -> tuple[Any, tuple[int, str] | None]:
    """The entry point of the program, or the kind and text of what went wrong."""
    try:
        code = compile(program, FILE_NAME, "exec", dont_inherit=True)
    except BaseException as error:
        return None, (SYNTAX_ERROR, describe_syntax(error))
    module = types.ModuleType("program")
    module.__file__ = FILE_NAME
    sys.modules["program"] = module
    try:
        exec(code, module.__dict__)
        if entry_point not in module.__dict__:
            raise NameError(f"name '{entry_point}' is not defined")
        return module.__dict__[entry_point], None
    except BaseException as error:
        return None, describe(error, program)


def call(function: Any, arguments: bytes, limit: int) -> tuple[int, str]:
    try:
        return VALUE, to_literal(function(*marshal.loads(arguments)), limit)
    except BaseException as error:
        return describe(error, "")


def describe(error: BaseException, program: str) -> tuple[int, str]:
    """Kind and text of an exception; its methods may be hostile, so each use is guarded."""
    try:
        if isinstance(error, MemoryError):
            _use_reserve()
            return MEMORY_LIMIT, "MemoryError"
        if isinstance(error, OutputLimit | LiteralTooLong):
            return OUTPUT_LIMIT, "returned or printed more than is allowed"
        name = "TypeError" if isinstance(error, LiteralError) else type(error).__name__
        message = f"{name}: {error}".removesuffix(": ")
        return RUNTIME_ERROR, f"{message[: MAX_ERROR_CHARS // 2]}{_place(error)}"[:MAX_ERROR_CHARS]
    except MemoryError:
        _use_reserve()
        return MEMORY_LIMIT, "MemoryError"
    except BaseException:
        return RUNTIME_ERROR, "an exception that cannot be shown"


def describe_syntax(error: BaseException) -> str:
    message = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
    if isinstance(error, SyntaxError) and error.lineno:
        message += f"\n  {FILE_NAME}, line {error.lineno}\n    {(error.text or '').strip()}"
    return message[:MAX_ERROR_CHARS]


def _place(error: BaseException) -> str:
    """Last line of the program on the way to the error."""
    place, step = "", error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if code.co_filename == FILE_NAME:
            place = f"\n  {FILE_NAME}, line {step.tb_lineno}, in {code.co_name}"
        step = step.tb_next
    return place


def _use_reserve() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def send(stream: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(stream, view) :]
