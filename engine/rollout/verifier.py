"""Ray actor that settles actions, which of programs is to verify them. Invariant: its process holds
the sandbox and no model."""

from __future__ import annotations

import os
from collections.abc import Sequence

from engine.config.schema import RunConfig
from engine.environments.opening import open_environment
from engine.environments.types import Move, Settled
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.self_check import SelfCheck
from engine.sandbox.host.verdict_cache import CachingVerifier
from engine.sandbox.limits import SandboxCaps

GIVES_WAY = 5
"""Niceness of actors that write and verify alongside a learner: an update is one piece of work,
which ends late if it shares its core; what they do not get done meanwhile they do after it."""


class Verifier:
    """Actor that runs programs in the sandbox of one node, `slots` at once; holds no model."""

    def __init__(self, run: RunConfig, slots: int, caps: SandboxCaps):
        if run.training.overlap:
            os.nice(GIVES_WAY)
        self.sandbox = Sandbox(run.sandbox.model_copy(update={"workers": slots}), caps)
        self.check = SelfCheck(self.sandbox)
        self.check.when_due()
        self.verifier = CachingVerifier(self.sandbox)
        self.environment = open_environment(run)

    def settle(self, moves: Sequence[Move]) -> list[Settled]:
        """Returns what comes of each move, in order; a program that was verified before is not run
        again.

        Raises:
            SandboxUnavailable: the sandbox fails its self-check.
        """
        self.check.when_due()
        return self.environment.settle(moves, self.verifier.verify)

    def tier(self) -> str:
        """Returns the tier of the walls around programs."""
        return self.sandbox.tier()

    def close(self) -> None:
        self.sandbox.close()
