"""Executors of the process that vLLM starts. Invariant: it ends with the process that started it.

vLLM's own clean-up needs a living parent; a killed one would leave a model in memory.
"""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Any

from vllm.v1.executor import Executor
from vllm.v1.executor.multiproc_executor import MultiprocExecutor
from vllm.v1.executor.uniproc_executor import UniProcExecutor

_PR_SET_PDEATHSIG = 1


class TiedUniProcExecutor(UniProcExecutor):
    """Executor with the model in the engine's own process."""

    def _init_executor(self) -> None:
        _end_with_parent()
        super()._init_executor()


class TiedMultiprocExecutor(MultiprocExecutor):
    """Executor with one process per GPU; they end with the engine's."""

    def _init_executor(self) -> None:
        _end_with_parent()
        super()._init_executor()


def executor_of(config: Any) -> type[Executor]:
    """Returns the executor for a configuration of vLLM."""
    single_process = config.parallel_config.world_size == 1
    return TiedUniProcExecutor if single_process else TiedMultiprocExecutor


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1:  # the parent had already ended
        os._exit(1)
