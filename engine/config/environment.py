"""Settings of the environment, which decides what a turn is and what an answer is worth."""

from __future__ import annotations

from engine.config.method_settings import MethodSettings


class EnvironmentConfig(MethodSettings):
    SECTION = "environment"

    name: str = "programs"
    """What agents act in: a name in `engine.environments.ENVIRONMENTS`. In `programs` an answer is
    one program, which the tests of its problem judge."""

    @property
    def judges_programs(self) -> bool:
        """Whether actions are the programs of problems."""
        return bool(getattr(self.module("name"), "JUDGES_PROGRAMS", False))
