"""Child of the zygote: runs one program and writes one frame per call.

Standard library only, imported by the zygote before it forks, so that a child imports nothing.

Invariant: a frame claims a value or names a failure; it never states whether a value is right.
"""

import atexit
import builtins
import io
import marshal
import os
import random
import re
import resource
import sys
import types
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import objects
import shapes
from literals import LiteralError, LiteralNotPlain, LiteralTooLong, to_literal
from wire import (
    FRAME,
    MAX_ERROR_CHARS,
    MAX_NAME_CHARS,
    MEMORY_LIMIT,
    MOST_FRAMES,
    NOT_LOADED,
    OUTPUT_LIMIT,
    RAISED,
    REQUEST,
    RUNTIME_ERROR,
    SHAPED,
    SYNTAX_ERROR,
    TRACE,
    VALUE,
)

FILE_NAME, PRELUDE_NAME = "program.py", "prelude.py"
STREAM, INCOMING, OUTGOING = 3, 4, 5
TOO_MUCH_OUTPUT = "returned or printed more than is allowed"

Failure = tuple[int, str]
"""Kind and text of a failure."""


class OutputLimit(BaseException):
    """The program printed more than its limit."""


class BoundedOutput:
    """Replaces stdout and stderr: counts the output, keeps none, raises OutputLimit."""

    encoding, errors, closed = "utf-8", "strict", False

    def __init__(self, limit: int):
        self.limit = limit
        self.room = limit

    @property
    def buffer(self) -> "BoundedOutput":
        return self

    def write(self, data: str | bytes) -> int:
        self.room -= len(data)
        if self.room < 0:
            raise OutputLimit
        return len(data)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    seekable = isatty = readable

    def flush(self, **_: Any) -> None:
        pass

    close = reconfigure = flush


def calls(job: bytes) -> None:
    """Makes every call, each with its own arguments, and writes its frame."""
    prelude, program, entry_point, arguments, limit = marshal.loads(job)  # nosec B302
    output = silence(limit)
    function, failure = load(prelude, program, entry_point)
    for index, packed in enumerate(arguments):
        output.room = limit
        kind, text = failure or call(function, packed, limit)
        send(STREAM, index, kind, text)
        if _patterns or kind != VALUE or output.room < limit:
            renew()


def one_call(job: bytes, index: int) -> int:
    """Makes one of the calls of a FORK_PER_CALL; returns NOT_LOADED if the program could not be
    loaded, otherwise 0.

    INCOMING holds the arguments of all calls, concatenated; OUTGOING the compiled program, which
    the first child stores there for the others before any of it is executed.
    """
    prelude, program, entry_point, limit, sizes = marshal.loads(job)  # nosec B302
    silence(limit)
    packed = os.pread(INCOMING, sizes[index], sum(sizes[:index]))
    codes, failure = compiled_once(prelude, program)
    os.closerange(INCOMING, OUTGOING + 1)
    function, failure = define(codes, failure, entry_point)
    send(STREAM, 0, *(failure or call(function, packed, limit)))
    return NOT_LOADED if failure else 0


def compiled_once(prelude: str, program: str) -> tuple[list[types.CodeType], Failure | None]:
    """Returns the result of `compiled`, which the first call stores in OUTGOING for the others."""
    if size := os.fstat(OUTGOING).st_size:
        return marshal.loads(os.pread(OUTGOING, size, 0)), None  # nosec B302
    codes, failure = compiled(prelude, program)
    if not failure:
        try:
            write(OUTGOING, marshal.dumps(codes))
        except OSError:  # larger than the file limit: each child compiles it
            os.ftruncate(OUTGOING, 0)
    return codes, failure


def call(function: Any, packed: bytes, limit: int) -> tuple[int, str]:
    try:
        result = function(*marshal.loads(packed))  # nosec B302
        try:
            return VALUE, to_literal(result, limit)
        except LiteralNotPlain:
            # Metrics compare by ==, to which a Counter is a dict and a named tuple a tuple.
            return VALUE, to_literal(result, limit, subclasses=True)
    except BaseException as error:
        return describe_traced(error)


def answer(job: bytes) -> None:
    """Makes the calls that a judge requests, until it closes the channel.

    The first response reports whether the program could be loaded.
    """
    prelude, program, entry_point, limit = marshal.loads(job)  # nosec B302
    output = silence(limit)
    function, failure = load(prelude, program, entry_point)
    send(OUTGOING, 0, *(failure or (VALUE, "None")))
    index = 0
    while not failure and (packed := receive(INCOMING)) is not None:
        index += 1
        output.room = limit
        kind, text = respond(function, packed, limit)
        send(OUTGOING, index, kind, text)
        if _patterns or kind != VALUE or output.room < limit:
            renew()


def renew() -> None:
    """Discards the state that a call of plain functions leaves in modules: compiled patterns, and
    the record of printed warnings. A hostile program, which may leave any other state, is never
    called twice where that matters."""
    with suppress(BaseException):
        _purge()
        _mutate_filters("ignore", ResourceWarning, append=True)  # no change but a new version


_purge, _mutate_filters = re.purge, warnings.simplefilter
_patterns = getattr(re, "_cache", True)
"""Cache of compiled patterns, empty when a child starts. Only compiling one prints a warning, and
not every pattern is kept, so a call that printed leaves a state too."""


def respond(function: Any, packed: bytes, limit: int) -> tuple[int, str]:
    try:
        (arguments, keywords), entries = marshal.loads(packed)  # nosec B302
        if entries:
            classes = sys.modules["program"].__dict__
            arguments, keywords = objects.rebuilt((arguments, keywords), entries, classes)
        result = function(*arguments, **keywords)
        if not shapes.shape_of(result):
            with suppress(LiteralNotPlain):
                return VALUE, to_literal(result, limit)
        return SHAPED, to_literal(shapes.written(result, limit), limit)
    except BaseException as error:
        kind, text = describe_traced(error)
        if kind != RUNTIME_ERROR:
            return kind, text
        return RAISED, to_literal((*builtin_form(error), text))


def builtin_form(error: BaseException) -> tuple[str, str]:
    """Returns the name of the nearest built-in class of an exception, and its message."""
    try:
        names = [c.__name__ for c in type(error).__mro__ if getattr(builtins, c.__name__, 0) is c]
        single = len(error.args) == 1 and type(error.args[0]) is str
        message = error.args[0] if single else str(error)
        return names[0], f"{message}"[:MAX_ERROR_CHARS]
    except BaseException:
        return "RuntimeError", "an exception that cannot be shown"


def receive(source: int) -> bytes | None:
    """Returns the packed arguments of one call; None once the judge has ended."""
    head = read_exactly(source, REQUEST.size)
    return None if head is None else read_exactly(source, *REQUEST.unpack(head))


def read_exactly(source: int, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        chunk = os.read(source, min(size - len(data), 1 << 20))
        if not chunk:
            return None
        data += chunk
    return bytes(data)


def script(job: bytes) -> None:
    """Runs the program as `python program.py` would; writes a frame only if it fails."""
    prelude, program = marshal.loads(job)  # nosec B302
    random.seed(0)
    attach_standard_streams()
    name_standard_streams()
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    codes, failure = compiled(prelude, program)
    try:
        execute(codes, module)
    except BaseException as error:
        failure = exit_status(error)
    failure = finish() or failure
    if failure:
        send(STREAM, 0, *failure)


def attach_standard_streams() -> None:
    """Opens text streams on descriptors 0, 1 and 2, with the buffers of a script."""
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115


_DEVICES = {
    path: number
    for number, name in enumerate(("stdin", "stdout", "stderr"))
    for path in (f"/dev/{name}", f"/dev/fd/{number}", f"/proc/self/fd/{number}")
}
"""Paths by which scripts open their own streams. A child reaches none of them behind its walls."""


def name_standard_streams() -> None:
    """Has `open` find the standard streams by their paths, which lead to no file here."""

    whole: Callable[..., Any] = io.open
    plain = os.open

    def number_of(file: Any) -> int | None:
        path = os.fspath(file) if isinstance(file, os.PathLike) else file
        return _DEVICES.get(path) if isinstance(path, str) else None

    def open(file: Any, *arguments: Any, **options: Any) -> Any:
        number = number_of(file)
        if number is None:
            return whole(file, *arguments, **options)
        return whole(number, *arguments, **{**options, "closefd": False})

    def open_descriptor(path: Any, *arguments: Any, **options: Any) -> int:
        number = number_of(path)
        return plain(path, *arguments, **options) if number is None else number

    builtins.open = io.open = open  # type: ignore[assignment]
    os.open = open_descriptor


def exit_status(error: BaseException) -> Failure | None:
    """Returns the failure of a script that ended by an exception; None for exit() and exit(0)."""
    if isinstance(error, SystemExit) and (error.code is None or error.code == 0):
        return None
    return describe_traced(error)


def finish() -> Failure | None:
    """Does what the interpreter does after a script: joins threads, runs atexit, flushes output."""
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.__stdout__):
            if stream is not None and not stream.closed:
                stream.flush()
    except BaseException as error:
        return exit_status(error)
    return None


def silence(limit: int) -> BoundedOutput:
    sys.stdout = sys.stderr = output = BoundedOutput(limit)
    random.seed(0)  # the same program has to give the same answer again
    return output


def load(
    prelude: str, program: str, entry_point: str
) -> tuple[Callable[..., Any] | None, Failure | None]:
    """Loads a program; returns its entry point, or the failure that prevented loading."""
    return define(*compiled(prelude, program), entry_point)


def define(
    codes: list[types.CodeType], failure: Failure | None, entry_point: str
) -> tuple[Callable[..., Any] | None, Failure | None]:
    """Executes a compiled program; returns its entry point, or the failure of either step."""
    if failure:
        return None, not_loaded(failure)
    module = types.ModuleType("program")
    sys.modules["program"] = module
    try:
        execute(codes, module)
        return entry(module.__dict__, entry_point), None
    except BaseException as error:
        return None, not_loaded(describe_traced(error))


def not_loaded(failure: Failure) -> Failure:
    kind, text = failure
    return kind + NOT_LOADED, text


def compiled(prelude: str, program: str) -> tuple[list[types.CodeType], Failure | None]:
    """Compiles prelude and program; returns the code in order of execution, empty on failure."""
    try:
        # A byte order mark is not part of the program's text.
        text = program.removeprefix("\ufeff")
        codes = [compile(text, FILE_NAME, "exec", dont_inherit=True)]
    except BaseException as error:
        return [], (SYNTAX_ERROR, describe_syntax(error))
    try:
        if prelude:
            codes.insert(0, compile(prelude, PRELUDE_NAME, "exec", dont_inherit=True))
    except BaseException as error:
        return [], describe(error)
    return codes, None


def execute(codes: list[types.CodeType], module: types.ModuleType) -> None:
    module.__file__ = FILE_NAME
    for code in codes:
        exec(code, module.__dict__)  # nosec B102


def entry(names: dict[str, Any], entry_point: str) -> Callable[..., Any]:
    """Returns the function `name`; for `Class.name`, one that calls the method of a new object."""
    owner, _, method = entry_point.rpartition(".")
    if (owner or method) not in names:
        raise NameError(f"name '{owner or method}' is not defined")
    if not owner:
        return names[method]

    def called(*arguments: Any, **keywords: Any) -> Any:
        return getattr(names[owner](), method)(*arguments, **keywords)

    return called


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
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def send(stream: int, index: int, kind: int, text: str) -> None:
    payload = text.encode("utf-8", "backslashreplace")
    write(stream, FRAME.pack(index, kind, len(payload)) + payload)


def write(stream: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(stream, view) :]
