"""Two small policies of different size and strengths, made by supervised warm start.

`oak` has seen cleaner demonstrations over lists, `fern` over strings and numbers. Both know the
language and are often wrong, which leaves reinforcement learning its work. They are shipped, and
`python -m engine starters --seed 1 --out DIR` makes them again.
"""

from __future__ import annotations

from pathlib import Path

STARTERS = ("oak", "fern")


def starter_directory(name: str) -> Path:
    """Where a shipped starter lies. Raises ValueError for a name that is not one."""
    if name not in STARTERS:
        raise ValueError(
            f"model = starter:{name}: no such starter; choose one of {', '.join(STARTERS)}"
        )
    return Path(__file__).parent / name
