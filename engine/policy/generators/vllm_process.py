"""What runs in the process that vLLM starts. Invariant: it ends with the process that started it.

vLLM's own clean-up needs the parent to be alive; one that is killed would leave a model in memory.
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
    """The model is in the engine's own process."""

    def _init_executor(self) -> None:
        _end_with_parent()
        super()._init_executor()


class TiedMultiprocExecutor(MultiprocExecutor):
    """One process per GPU; they end with the engine's."""

    def _init_executor(self) -> None:
        _end_with_parent()
        super()._init_executor()


def executor_of(config: Any) -> type[Executor]:
    """The executor for a configuration of vLLM."""
    alone = config.parallel_config.world_size == 1
    return TiedUniProcExecutor if alone else TiedMultiprocExecutor


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1:  # it had ended before
        os._exit(1)
