"""Built-in generator of small Python problems: composed operations, seeded, split by structure."""

from engine.problems.generator.compose import VERSION, Split, make_problem
from engine.problems.generator.stream import GeneratedProblems
from engine.problems.generator.underspecified import make_underspecified

__all__ = ["VERSION", "GeneratedProblems", "Split", "make_problem", "make_underspecified"]
