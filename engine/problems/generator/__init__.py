"""Built-in generator of small Python problems: composed operations, seeded, split by structure."""

from engine.problems.generator.compose import VERSION, GeneratedProblems, Split, make_problem

__all__ = ["VERSION", "GeneratedProblems", "Split", "make_problem"]
