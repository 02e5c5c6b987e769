"""Child of the zygote: runs one program and writes one frame per call.

Standard library only, imported by the zygote before it forks, so that a child imports nothing.

Invariant: a frame claims a value or names a failure; it never states whether a value is right.
"""

import marshal
import os
import random
import re
import sys
import types
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import objects
import shapes
from failures import (
    FILE_NAME,
    PRELUDE_NAME,
    Failure,
    builtin_form,
    describe,
    describe_syntax,
    describe_traced,
    exit_status,
    not_loaded,
)
from literals import LiteralNotPlain, to_literal
from streams import attach_standard_streams, finish, name_standard_streams, silence
from wire import FRAME, NOT_LOADED, RAISED, REQUEST, RUNTIME_ERROR, SHAPED, SYNTAX_ERROR, VALUE

STREAM, INCOMING, OUTGOING = 3, 4, 5


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
    """Makes one call; returns kind and text of its frame, VALUE and a literal or a failure."""
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
    """Makes one call for a judge; returns kind and text of its frame."""
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


def receive(source: int) -> bytes | None:
    """Returns the packed arguments of one call; None once the judge has ended."""
    head = read_exactly(source, REQUEST.size)
    return None if head is None else read_exactly(source, *REQUEST.unpack(head))


def read_exactly(source: int, size: int) -> bytes | None:
    """Returns the next `size` bytes of a pipe; None if its other end closes before."""
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
    """Executes prelude and program in the namespace of a module."""
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


def send(stream: int, index: int, kind: int, text: str) -> None:
    """Writes one frame."""
    payload = text.encode("utf-8", "backslashreplace")
    write(stream, FRAME.pack(index, kind, len(payload)) + payload)


def write(stream: int, data: bytes) -> None:
    """Writes all of the data, however much the descriptor takes at once."""
    view = memoryview(data)
    while view:
        view = view[os.write(stream, view) :]
