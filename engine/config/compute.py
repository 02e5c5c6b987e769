"""Settings of devices, placement and the cluster."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from engine.config.base import Settings
from engine.config.locations import ClusterAddress


class Placement(StrEnum):
    """Placement of an agent's generators (`engine.training.cluster`)."""

    SEPARATE = "separate"
    COLOCATED = "colocated"


class ComputeConfig(Settings):
    device: str = Field("auto", pattern=r"^(auto|cpu|cuda)$")
    """Device on which models run; `auto` selects a GPU if there is one."""
    dtype: str = Field("float32", pattern=r"^(float32|bfloat16)$")
    """Data type of the weights in forward passes; the optimizer always steps in float32."""
    threads_per_agent: int = Field(1, ge=1, le=1024)
    """Cores, and torch threads, of one agent's actor."""
    generators_per_agent: int = Field(0, ge=0, le=64)
    """Actors that only generate, per set of weights that learns; they receive its new weights after
    every update. 0: the learner also generates, and the two alternate."""
    placement: Placement = Placement.SEPARATE
    """Place generators on their learner's node and GPU (`colocated`), or anywhere in the cluster
    (`separate`)."""
    strategy: str = Field("PACK", pattern=r"^(PACK|SPREAD|STRICT_PACK|STRICT_SPREAD)$")
    """Strategy of Ray's placement group: few nodes or many; STRICT_ refuses anything else."""
    placement_seconds: float = Field(600.0, gt=0, le=86400)
    """Seconds that a run waits for other runs to release the cores and GPUs that it needs."""
    lanes: int = Field(2, ge=1, le=16)
    """Groups of trees that alternate where trees grow in waves: while one is verified, the next is
    generated. One lane has the largest batches, and is best where agents and sandbox share the same
    few cores."""
    ray_address: ClusterAddress | None = None
    """Cluster to join, on the command line; unset, the run uses the RAY_ADDRESS variable or a local
    Ray."""
    deterministic: bool = False
    """Make every figure a function of these settings alone, even if the run is interrupted; also in
    a search, with any number of nodes in flight, which then run in waves.
    On the CPU only, which `auto` then selects; the clock may not decide when training ends."""

    @model_validator(mode="after")
    def _can_be_deterministic(self) -> ComputeConfig:
        if self.deterministic and self.device == "cuda":
            raise ValueError(
                "deterministic = true with device = cuda: sums there have no fixed order; "
                "set compute.device to cpu, or compute.deterministic to false"
            )
        return self
