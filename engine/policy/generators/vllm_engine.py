"""One vLLM engine behind blocking calls from ordinary threads.

vLLM's `AsyncLLM` runs on an event loop in a thread of its own; the model is in a process that
vLLM starts. Invariants:
- Every wait ends by a result or by its deadline, and its error names what it waited for.
- vLLM's processes log to a file; the error of a failure contains the first cause in it.
- vLLM's process ends with this one, however this one ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
import threading
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from engine.config.deadlines import VLLM_CONTROL, VLLM_START, Deadline
from engine.policy.generators import GeneratorError

Result = TypeVar("Result")

CAUSE = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception): \S.*$", re.MULTILINE)
REMEDIES = (
    (
        ("memory", "Memory", "KV cache"),
        "lower generator.gpu_memory_utilization or max_model_len (on a CPU: cpu_cache_gib), or "
        "free memory",
    ),
    (("not supported", "Unsupported", "unsupported"), "set generator.name to torch"),
)


class VllmEngine:
    """`AsyncLLM` behind blocking calls."""

    def __init__(self, path: str):
        """`path` is that of its settings, for errors."""
        self._path = path
        self._folder = tempfile.TemporaryDirectory(prefix="grove-vllm-")
        self.folder = Path(self._folder.name)
        """Files of the engine; `close` deletes it."""
        self._log = self.folder / "vllm.log"
        self._loop = asyncio.new_event_loop()
        # The engine's process ends with the thread that started it, so this thread stays alive.
        threading.Thread(target=self._loop.run_forever, name="vllm", daemon=True).start()
        self.llm: Any = None

    def start(self, arguments: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        """Starts it with these arguments of `AsyncEngineArgs` and environment variables.

        Raises:
            GeneratorError: it did not start, with the first cause.
        """
        with _environment({**environment, **self._log_settings()}):
            start = self._start(dict(arguments))
            # vLLM itself gives up after VLLM_START, with a cause; this is for what comes on top.
            self.llm = self.call(start, "start", VLLM_START, VLLM_CONTROL.seconds)

    def call(
        self,
        coroutine: Coroutine[Any, Any, Result],
        what: str,
        deadline: Deadline,
        more_seconds: float = 0.0,
    ) -> Result:
        """Returns the result of a coroutine on the engine's loop.

        Raises:
            GeneratorError: it failed, with the first cause, or took longer than its deadline.
        """
        seconds = deadline.seconds + more_seconds
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(seconds)
        except TimeoutError:
            future.cancel()
            raise GeneratorError(
                f"{self._path}: waited {seconds:g} s for vLLM to {what}; {deadline.remedy}"
            ) from None
        except (Exception, CancelledError) as error:
            first: BaseException = error
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            if isinstance(first, GeneratorError):
                raise first from None
            raise GeneratorError(self._failure_message(what, first)) from None

    def close(self) -> None:
        """Ends the engine and its process."""
        if self.llm is not None:
            self._loop.call_soon_threadsafe(self.llm.shutdown)
            done = asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop)
            done.result(VLLM_CONTROL.seconds)
            self.llm = None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._folder.cleanup()

    async def _start(self, arguments: dict[str, Any]) -> Any:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        from engine.policy.generators.vllm_process import executor_of

        config = AsyncEngineArgs(**arguments).create_engine_config()
        return AsyncLLM(config, executor_of(config), log_stats=False, log_requests=False)

    def _log_settings(self) -> dict[str, str]:
        file = {
            "class": "logging.FileHandler",
            "filename": str(self._log),
            "formatter": "plain",
            "level": "WARNING",
        }
        settings = {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"plain": {"format": "%(levelname)s %(message)s"}},
            "handlers": {"file": file},
            "loggers": {"vllm": {"handlers": ["file"], "level": "WARNING", "propagate": False}},
        }
        path = self.folder / "logging.json"
        path.write_text(json.dumps(settings))
        return {
            "VLLM_LOGGING_CONFIG_PATH": str(path),
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
            "VLLM_ENGINE_READY_TIMEOUT_S": str(VLLM_START.whole_seconds),
        }

    def _failure_message(self, what: str, error: BaseException) -> str:
        """Returns a message with the first cause that vLLM's processes logged, else the error."""
        log = self._log.read_text("utf-8", "replace") if self._log.is_file() else ""
        match = CAUSE.search(log)
        cause = match.group() if match else f"{type(error).__name__}: {_message(error)}"
        remedy = next((r for words, r in REMEDIES if any(w in cause for w in words)), "")
        return f"{self._path}: vLLM could not {what}: {cause}{f'; {remedy}' if remedy else ''}"


def _message(error: BaseException) -> str:
    """Returns an error on one line; for a validation error the messages, not only their number."""
    if callable(errors := getattr(error, "errors", None)):
        return "; ".join(str(entry.get("msg", entry)) for entry in errors())
    return " ".join(str(error).split())


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets these variables for the processes that are started in the block."""
    before = dict(os.environ)
    os.environ |= variables
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before
