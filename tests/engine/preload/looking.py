"""An actor that reports on its process.

Its module imports next to nothing, because the actor then does too: what it reports must have been
there before.
"""

import os

OF_THIS_WORKER = {"RAY_JOB_ID", "SHLVL", "_", "CUDA_VISIBLE_DEVICES"}


class Looking:
    """Reports on its process."""

    def parent(self):
        return os.getppid()

    def drawn(self):
        import random
        import uuid

        import numpy
        import torch

        return random.random(), numpy.random.random(), torch.rand(1).item(), uuid.uuid4().hex

    def facts(self):
        import resource
        import signal
        import sys

        import torch

        from engine import __file__ as engine

        numbers = [n for n in signal.valid_signals() if n < signal.SIGRTMIN]
        limits = (resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_CORE)

        def named(handler):
            return str(getattr(handler, "__name__", handler))

        mask = os.umask(0o77)
        os.umask(mask)
        return {
            "environment": {k: v for k, v in os.environ.items() if k not in OF_THIS_WORKER},
            "path": sys.path,
            "program": sys.argv[0],
            "flags": str(sys.flags),
            "directory": os.getcwd(),  # noqa: PTH109
            "mask": mask,
            "signals": {n: named(signal.getsignal(n)) for n in numbers},
            "blocked": signal.pthread_sigmask(signal.SIG_BLOCK, []),
            "limits": [resource.getrlimit(limit) for limit in limits],
            "niceness": os.nice(0),
            "session": os.getsid(0),
            "threads": torch.get_num_threads(),
            "engine": engine,
        }
