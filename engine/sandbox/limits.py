"""Caps of the sandbox: the most that a program gets, whatever settings and problems request.

The operator of a machine sets them by environment variables. A cap that is set lowers the settings
of a run too: on a server those are a member's. The default of an unset cap applies only to the
problems' own limits, which come with a data set and may exceed the settings up to that default.

Invariant: a cap only lowers; what it lowers is reported (`cuts`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from engine.config.errors import ConfigError

if TYPE_CHECKING:
    from engine.config.sandbox import SandboxConfig
    from engine.config.schema import RunConfig
    from engine.sandbox.cases import JudgedTask, Limits

DEFAULTS = {"seconds": 60, "memory_mb": 2048, "output_mb": 64}
MAX_CAPS = {"seconds": 3600, "memory_mb": 1 << 20, "output_mb": 1024}
"""Largest value of each cap; the smallest is 1."""
WALL_PER_CPU = 2.0
"""Most seconds of wall time per second of CPU time."""
_PREFIX = "GROVE_SANDBOX_"


@dataclass(frozen=True, slots=True)
class SandboxCaps:
    """Seconds of CPU time and MiB of memory of one run of a program, MiB that it returns or prints
    for one test; None: the default, which applies to the problems' own limits alone."""

    seconds: int | None = None
    memory_mb: int | None = None
    output_mb: int | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> SandboxCaps:
        """Reads the caps from GROVE_SANDBOX_SECONDS, _MEMORY_MB and _OUTPUT_MB.

        Raises:
            ConfigError: a value is not an integer from 1 to its `MAX_CAPS`.
        """
        given = {name: environment.get(variable(name), "") for name in DEFAULTS}
        if errors := [
            {
                "path": variable(name),
                "value": text,
                "reason": f"give 1 to {MAX_CAPS[name]}, or unset it",
            }
            for name, text in given.items()
            if text and not (_is_short_number(text) and 1 <= int(text) <= MAX_CAPS[name])
        ]:
            raise ConfigError(errors)
        return cls(**{name: int(text) for name, text in given.items() if text})

    def environment(self) -> dict[str, str]:
        """Returns the variables from which `from_environment` reads these caps."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {variable(name): str(value) for name, value in named.items() if value is not None}

    def of_settings(self, config: SandboxConfig) -> SandboxConfig:
        """Returns the settings, lowered to the caps that are set."""
        lower = {
            name: most
            for name, most in self.limits_of_settings().items()
            if getattr(config, name) > most
        }
        return config.model_copy(update=lower) if lower else config

    def of_run(self, config: RunConfig) -> RunConfig:
        """Returns the settings of a run with those of the sandbox lowered."""
        return config.model_copy(update={"sandbox": self.of_settings(config.sandbox)})

    def limits_of_settings(self) -> dict[str, Any]:
        """Returns the most that each field of `SandboxConfig` may be, for caps that are set."""
        limits: dict[str, Any] = {}
        if self.seconds is not None:
            limits |= {"cpu_seconds": self.seconds, "wall_seconds": WALL_PER_CPU * self.seconds}
        if self.memory_mb is not None:
            limits["memory_mb"] = self.memory_mb
        if self.output_mb is not None:
            limits["output_bytes"] = self.output_mb << 20
        return limits

    def max_seconds(self, config: SandboxConfig) -> float:
        """CPU seconds at most, for a problem with its own limit; `config` is already lowered."""
        return self.seconds or max(DEFAULTS["seconds"], config.cpu_seconds)

    def max_wall_seconds(self, config: SandboxConfig) -> float:
        """Wall seconds at most, for the same."""
        return max(config.wall_seconds, WALL_PER_CPU * self.max_seconds(config))

    def max_memory_mb(self, config: SandboxConfig) -> int:
        """MiB of memory at most, for the same."""
        return self.memory_mb or max(DEFAULTS["memory_mb"], config.memory_mb)

    def max_output_bytes(self, config: SandboxConfig) -> int:
        """Also caps the room for a problem's expected output, of which a program may print twice
        as much."""
        return max((self.output_mb or DEFAULTS["output_mb"]) << 20, config.output_bytes)

    def lowers(self, config: SandboxConfig, limits: Limits) -> bool:
        """Whether a problem's own limits are above the caps."""
        return (limits.seconds or 0) > self.max_seconds(config) or (
            limits.memory_mb or 0
        ) > self.max_memory_mb(config)

    def cuts(self, config: SandboxConfig, problems: Iterable[JudgedTask] = ()) -> list[str]:
        """Returns a message for each setting that the caps lower, and one for all problems."""
        lowered = self.of_settings(config)
        messages = [
            f"sandbox.{name} = {getattr(config, name)} is above what this machine's operator "
            f"allows ({VARIABLES[name]}): programs get {getattr(lowered, name)}"
            for name in self.limits_of_settings()
            if getattr(lowered, name) != getattr(config, name)
        ]
        if count := sum(self.lowers(lowered, problem.limits) for problem in problems):
            messages.append(
                f"{count} problems have limits of their own above what this machine's operator "
                f"allows ({variable('seconds')}, {variable('memory_mb')}): their programs get "
                f"{self.max_seconds(lowered):g} s and {self.max_memory_mb(lowered)} MiB at most"
            )
        return messages


def _is_short_number(text: str) -> bool:
    """Whether a text is digits, and few enough to be converted without cost."""
    return text.isascii() and text.isdigit() and len(text) < 10


def variable(name: str) -> str:
    """Returns the environment variable of a cap."""
    return f"{_PREFIX}{name.upper()}"


VARIABLES = {
    "cpu_seconds": variable("seconds"),
    "wall_seconds": variable("seconds"),
    "memory_mb": variable("memory_mb"),
    "output_bytes": variable("output_mb"),
}
"""Environment variable of the cap of each field of `SandboxConfig`."""
