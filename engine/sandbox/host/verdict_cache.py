"""Cache of verdicts, which runs equal programs once: learning agents often repeat right programs.

Invariants: only verdicts that another run would reproduce are cached, never those that depend on
the load of the machine (a limit that was reached, a failure of the sandbox). Several threads may
verify at once.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable

from engine.events.vocabulary import Verdict
from engine.sandbox.cases import JudgedTask, TaskTests
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.verify import Verification, verify

LASTING = {
    Verdict.PASSED,
    Verdict.WRONG_ANSWER,
    Verdict.RUNTIME_ERROR,
    Verdict.SYNTAX_ERROR,
}

Key = bytes
"""Digest of all that a verdict depends on: the problem without its text and labels, the program."""


class CachingVerifier:
    """Verifies through one sandbox, with an LRU cache of `most` verdicts."""

    def __init__(self, sandbox: Sandbox, most: int = 10_000):
        self.sandbox = sandbox
        self.most = most
        self._verdicts: OrderedDict[Key, Verification] = OrderedDict()
        self._lock = threading.Lock()

    def verify(self, programs: Iterable[tuple[JudgedTask, str]]) -> list[Verification]:
        """Verifies like `verify`, in order; equal programs on equal tests share one run.

        Raises:
            SandboxUnavailable: the sandbox cannot be started.
        """
        pairs = [(_key(problem, program), problem, program) for problem, program in programs]
        with self._lock:
            results = {key: self._cached(key) for key, *_ in pairs if key in self._verdicts}
        todo = {key: (problem, program) for key, problem, program in pairs if key not in results}
        fresh = dict(zip(todo, verify(self.sandbox, todo.values()), strict=True))
        with self._lock:
            for key, verification in fresh.items():
                self._store(key, verification)
        results |= fresh
        return [results[key] for key, *_ in pairs]

    def _cached(self, key: Key) -> Verification:
        self._verdicts.move_to_end(key)
        return self._verdicts[key]

    def _store(self, key: Key, verification: Verification) -> None:
        if verification.verdict not in LASTING or verification.near_its_limit:
            return
        self._verdicts[key] = verification
        if len(self._verdicts) > self.most:
            self._verdicts.popitem(last=False)


def _key(problem: JudgedTask, program: str) -> Key:
    return hashlib.sha256(
        repr((TaskTests.of(problem), program)).encode("utf-8", "surrogatepass")
    ).digest()
