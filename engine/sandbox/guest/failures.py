"""Failures of a program: their kinds, as frames name them, and their texts for people.

Standard library only, imported by the zygote before it forks.

Invariant: an exception of a program may be hostile, so every use of one is guarded; a text has at
most `wire.MAX_ERROR_CHARS` characters, without the frames that follow it.
"""

import builtins
import resource

from literals import LiteralError, LiteralTooLong
from wire import (
    MAX_ERROR_CHARS,
    MAX_NAME_CHARS,
    MEMORY_LIMIT,
    MOST_FRAMES,
    NOT_LOADED,
    OUTPUT_LIMIT,
    RUNTIME_ERROR,
    TRACE,
)

FILE_NAME, PRELUDE_NAME = "program.py", "prelude.py"
"""Names under which tracebacks show the program and its prelude."""
TOO_MUCH_OUTPUT = "returned or printed more than is allowed"

Failure = tuple[int, str]
"""Kind and text of a failure."""


class OutputLimit(BaseException):
    """The program printed more than its limit."""


def describe(error: BaseException) -> Failure:
    """Returns kind and text of an exception; its methods may be hostile, so each use is guarded."""
    try:
        if isinstance(error, MemoryError):
            _use_reserve()
            return MEMORY_LIMIT, "MemoryError"
        if isinstance(error, OutputLimit | LiteralTooLong):
            return OUTPUT_LIMIT, TOO_MUCH_OUTPUT
        name = "TypeError" if isinstance(error, LiteralError) else type(error).__name__
        message = f"{name}: {error}".removesuffix(": ")
        return RUNTIME_ERROR, f"{message[: MAX_ERROR_CHARS // 2]}{_location(error)}"[
            :MAX_ERROR_CHARS
        ]
    except MemoryError:
        _use_reserve()
        return MEMORY_LIMIT, "MemoryError"
    except BaseException:
        return RUNTIME_ERROR, "an exception that cannot be shown"


def describe_traced(error: BaseException) -> Failure:
    """Returns the same as `describe`; the text of a RUNTIME_ERROR ends with the program's last
    frames."""
    kind, text = describe(error)
    return (kind, f"{text}{TRACE}{_frames(error)}") if kind == RUNTIME_ERROR else (kind, text)


def _frames(error: BaseException) -> str:
    """Returns line and function of the program's last frames in an exception's traceback."""
    try:
        last: list[str] = []
        frame = error.__traceback__
        while frame is not None:
            code = frame.tb_frame.f_code
            if code.co_filename == FILE_NAME:
                last = [*last, f"{frame.tb_lineno} {code.co_name[:MAX_NAME_CHARS]}"][-MOST_FRAMES:]
            frame = frame.tb_next
        return "\n".join(last)
    except BaseException:
        return ""


def describe_syntax(error: BaseException) -> str:
    """Returns the text of an exception of the compiler, with the line that it is about."""
    message = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
    if isinstance(error, SyntaxError) and error.lineno:
        message += f"\n  {error.filename}, line {error.lineno}\n    {(error.text or '').strip()}"
    return message[:MAX_ERROR_CHARS]


def _location(error: BaseException) -> str:
    """Returns the last line of the program in an exception's traceback."""
    location, frame = "", error.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        if code.co_filename in (FILE_NAME, PRELUDE_NAME):
            location = f"\n  {code.co_filename}, line {frame.tb_lineno}, in {code.co_name}"
        frame = frame.tb_next
    return location


def _use_reserve() -> None:
    """Adds the memory that is kept for describing a failure."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def builtin_form(error: BaseException) -> tuple[str, str]:
    """Returns the name of the nearest built-in class of an exception, and its message."""
    try:
        names = [c.__name__ for c in type(error).__mro__ if getattr(builtins, c.__name__, 0) is c]
        single = len(error.args) == 1 and type(error.args[0]) is str
        message = error.args[0] if single else str(error)
        return names[0], f"{message}"[:MAX_ERROR_CHARS]
    except BaseException:
        return "RuntimeError", "an exception that cannot be shown"


def exit_status(error: BaseException) -> Failure | None:
    """Returns the failure of a script that ended by an exception; None for exit() and exit(0)."""
    if isinstance(error, SystemExit) and (error.code is None or error.code == 0):
        return None
    return describe_traced(error)


def not_loaded(failure: Failure) -> Failure:
    """Returns the same failure as one that occurred before any call could be made."""
    kind, text = failure
    return kind + NOT_LOADED, text
