"""What a reward reads: the verdicts on one program. Not of programs whose verification failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Outcome(Protocol):
    """Part of `engine.sandbox.host.verify.Verification`."""

    @property
    def passed(self) -> bool:
        """Whether every test passed."""
        ...

    @property
    def fraction(self) -> float:
        """Share of all tests that passed."""
        ...

    @property
    def public(self) -> Sequence[Any]:
        """Reports of the public tests."""
        ...

    @property
    def public_passed(self) -> int:
        """Number of public tests that passed."""
        ...

    @property
    def private_passed(self) -> bool:
        """Whether every private test passed."""
        ...
