"""Problems whose statement alone exceeds an agent's limit of prompt tokens.

They are left out, with their reason, before anything is sampled: no shorter prompt exists, so the
turn of such a problem would end a run in the middle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.problems.problem import Problem

TooLong = Callable[[Sequence[str]], dict[int, str]]
"""Returns, by index, why statements do not fit into a prompt (`Renderer.too_long`)."""


def divided_by_length(
    problems: Sequence[Problem], too_long: TooLong
) -> tuple[list[Problem], list[tuple[Problem, str]]]:
    """Returns the problems whose statements fit, and the others with their reasons."""
    reasons = too_long([problem.statement for problem in problems])
    fitting = [problem for index, problem in enumerate(problems) if index not in reasons]
    return fitting, [(problems[index], reasons[index]) for index in sorted(reasons)]
