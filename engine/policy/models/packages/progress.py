"""Progress of an installation, as one share of the whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    WAITING = "Waiting for another installation"
    DOWNLOADING = "Downloading"
    EXTRACTING = "Extracting"
    CONVERTING = "Converting"
    DONE = "Installed"


_STARTS = {
    Phase.WAITING: 0.0,
    Phase.DOWNLOADING: 0.0,
    Phase.EXTRACTING: 0.6,
    Phase.CONVERTING: 0.65,
    Phase.DONE: 1.0,
}
"""Share of the whole at which each phase starts; it ends where the next one starts."""


@dataclass(frozen=True)
class Progress:
    phase: Phase
    done: float = 0
    """Bytes of a download, or share of a conversion."""
    total: float = 0

    @property
    def share(self) -> float:
        """Share of the whole installation, from 0 to 1."""
        start = _STARTS[self.phase]
        end = min((other for other in _STARTS.values() if other > start), default=1.0)
        if self.phase is Phase.WAITING or not self.total:
            return start
        return start + (end - start) * min(1.0, self.done / self.total)


Report = Callable[[Progress], None]
