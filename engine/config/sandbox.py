"""Settings of the sandbox."""

from __future__ import annotations

from pydantic import Field

from engine.config.base import Settings


class SandboxConfig(Settings):
    workers: int = Field(1, ge=1, le=256)
    """Programs that run concurrently. On a cluster of several nodes each node runs as many as it
    has cores that no agent holds."""
    cpu_seconds: float = Field(2.0, gt=0, le=3600)
    """CPU time limit of one run of a program."""
    wall_seconds: float = Field(4.0, gt=0, le=3600)
    """Deadline of one run of a program: first of all its tests, then of each that failed, alone."""
    memory_mb: int = Field(256, ge=32, le=1 << 20)
    """Memory limit of one program."""
    output_bytes: int = Field(65536, ge=256, le=1 << 30)
    """Maximum bytes that a program may return or print for one test."""
    allow_unsafe: bool = False
    """Run programs even on a host that allows neither tier of isolation. For a single user who
    trusts the models; never for a shared machine."""
