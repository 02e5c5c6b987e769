"""Self-check of the sandbox: runs programs with known verdicts at start-up and periodically.

Invariant: a sandbox gives verdicts only if it has recently judged known right and wrong programs
correctly.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from engine.events.vocabulary import Verdict
from engine.sandbox.cases import CallTest, CodeTest, StdinTest, TaskTests
from engine.sandbox.host.errors import SandboxUnavailable
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.verify import verify

CALLS = (CallTest(([3, 1, 2],), [1, 2, 3]),)
CODE = (CodeTest("assert candidate([3, 1, 2]) == [1, 2, 3]"),)
PRINTED = (StdinTest("3 1 2\n", "1 2 3\n"),)
CASES = (
    ("solve", CALLS, "import heapq, colorsys\ndef solve(x):\n    return sorted(x)\n"),
    ("solve", CALLS, "def solve(x):\n    return x\n", Verdict.WRONG_ANSWER),
    ("solve", CALLS, "def solve(x):\n    return missing\n", Verdict.RUNTIME_ERROR),
    ("solve", CODE, "def solve(x):\n    return sorted(x)\n"),
    ("solve", CODE, "def solve(x):\n    return x\n", Verdict.WRONG_ANSWER),
    ("", PRINTED, "print(*sorted(input().split()))\n"),
    ("", PRINTED, "print(input())\n", Verdict.WRONG_ANSWER),
)


EVERY_SECONDS = 600.0


class SelfCheck:
    """Schedules the self-check of one sandbox."""

    def __init__(self, sandbox: Sandbox, every_seconds: float = EVERY_SECONDS):
        self._sandbox = sandbox
        self._every_seconds = every_seconds
        self._next = -float("inf")

    def when_due(self) -> None:
        """Runs the check at the first call, and once `every_seconds` have passed since the last.

        Raises:
            SandboxUnavailable: see `self_check`.
        """
        if time.monotonic() >= self._next:
            self_check(self._sandbox)
            self._next = time.monotonic() + self._every_seconds


def self_check(sandbox: Sandbox) -> None:
    """Checks that the slots of the sandbox give the right verdicts on known programs.

    Raises:
        SandboxUnavailable: a verdict is wrong; names it, and the settings to check.
    """
    for entry_point, tests, program, *verdict in CASES:
        right = verdict[0] if verdict else Verdict.PASSED
        problem = TaskTests(entry_point, tests, tests)
        for result in verify(sandbox, [(problem, program)] * sandbox.config.workers):
            if result.verdict != right:
                raise SandboxUnavailable(
                    f"the sandbox judged {program!r} as {result.verdict} instead of {right} "
                    f"({result.error or 'no error'}); look at sandbox.memory_mb "
                    f"= {sandbox.config.memory_mb}, sandbox.wall_seconds "
                    f"= {sandbox.config.wall_seconds}, the load of this machine, and whether an "
                    f"unprivileged account can read {Path(os.__file__).parent}"
                )
