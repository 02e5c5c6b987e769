"""How a program's end reaches its run: at exit, by an exception, or by `sys.exit` with a code.

Invariant: the hooks are installed once, call what was there before, and do nothing without a run.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

_state: dict[str, Any] = {"installed": False, "code": 0, "error": None}


def install(end: Callable[[int, BaseException | None], None]) -> None:
    """Has `end` called at exit, with the exit code and the exception that ended the program."""
    if _state["installed"]:
        return
    _state["installed"] = True
    excepthook, leave = sys.excepthook, sys.exit

    def noting_exception(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        _state["error"] = error
        excepthook(kind, error, trace)

    def noting_exit(code: Any = None) -> None:
        _state["code"] = code if isinstance(code, int) else int(code is not None)
        leave(code)

    sys.excepthook = noting_exception
    sys.exit = noting_exit  # type: ignore[assignment]
    atexit.register(lambda: end(_state["code"], _state["error"]))
