"""Ray actor of policies. Invariant: no process holds both a model and the sandbox, whose actor is
`engine.rollout.verifier.Verifier`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from engine.config.agents import AgentConfig
from engine.config.schema import RunConfig
from engine.policy.handles import PolicyHandle, forwards
from engine.preload.allocator import keep_freed_memory
from engine.rollout.verifier import GIVES_WAY


@forwards(PolicyHandle, to="host")
class PolicyActor:
    """Actor of one or several policies in their own process; the driver never imports torch. Its
    methods are the verbs of `PolicyHandle`.

    With a `number` it is the generator of that number for these policies: it only generates, with
    the weights that it receives.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[AgentConfig]],
        run: RunConfig,
        seeds: Sequence[int],
        number: int | None = None,
        run_dir: Path | None = None,
        clock: str | None = None,
    ):
        if run.compute.device != "cuda":
            keep_freed_memory()
        if number is not None and run.training.overlap:
            os.nice(GIVES_WAY)
        from engine.policy.host import PolicyHost

        self.host = PolicyHost(groups, run, seeds, number, run_dir, clock)
