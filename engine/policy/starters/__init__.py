"""Small policies of different size and strengths in two pairs, made by supervised warm start.

`oak` was trained on cleaner demonstrations over lists, `fern` over strings and numbers. Both know
the language and are often wrong, so that reinforcement learning can improve them. `ash` and `rowan`
are such a pair that has also seen underspecified problems and their repairs. They ship with Grove;
`python -m engine starters --seed 1 --out DIR` reproduces them.
"""

from __future__ import annotations

from pathlib import Path

STARTERS = ("oak", "fern", "ash", "rowan")


def starter_directory(name: str) -> Path:
    """Returns the directory of a shipped starter. Raises ValueError for an unknown name."""
    if name not in STARTERS:
        raise ValueError(
            f"model = starter:{name}: no such starter; choose one of {', '.join(STARTERS)}"
        )
    return Path(__file__).parent / name
