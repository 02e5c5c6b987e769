"""Settings of devices, placement and the cluster."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from engine.config.base import Settings, Whole
from engine.config.locations import ClusterAddress


class Placement(StrEnum):
    """Where an agent's generators stand (`engine.training.cluster`)."""

    SEPARATE = "separate"
    COLOCATED = "colocated"


class ComputeConfig(Settings):
    device: str = Field("auto", pattern=r"^(auto|cpu|cuda)$")
    """Where models run; `auto` takes a GPU if there is one."""
    dtype: str = Field("float32", pattern=r"^(float32|bfloat16)$")
    """Of the weights that are run; an optimizer steps in float32 whatever they are."""
    threads_per_agent: Whole = Field(1, ge=1)
    """Cores, and torch threads, that one agent's actor gets."""
    generators_per_agent: int = Field(0, ge=0, le=64)
    """Actors that only write, for each set of weights that learns; they get its new weights after
    every update. 0: the learner writes too, and one does not happen while the other does."""
    placement: Placement = Placement.SEPARATE
    """Generators beside their learner, on the same node and GPU (`colocated`), or wherever the
    cluster has room."""
    strategy: str = Field("PACK", pattern=r"^(PACK|SPREAD|STRICT_PACK|STRICT_SPREAD)$")
    """Of Ray's placement group: actors on few nodes, or on many; STRICT_ refuses anything else."""
    placement_seconds: float = Field(600.0, gt=0, le=86400)
    """How long a run waits for others to leave the cores and GPUs that it needs."""
    lanes: int = Field(2, ge=1, le=16)
    """Groups of trees that take turns where trees grow in waves: while one is verified, the next is
    written. One lane has the largest batches, and is best where agents and sandbox share the same
    few cores."""
    ray_address: ClusterAddress | None = None
    """Cluster to join, on the command line; unset, the RAY_ADDRESS variable or a local Ray is
    used."""
    deterministic: bool = False
    """Make every figure a function of these settings alone, whether the run is interrupted or not;
    a search too, with any number of nodes in flight, which then come in waves.
    On the CPU only, which `auto` then takes; the clock may not decide when training ends."""

    @model_validator(mode="after")
    def _can_be_deterministic(self) -> ComputeConfig:
        if self.deterministic and self.device == "cuda":
            raise ValueError(
                "deterministic = true with device = cuda: sampling there adds up in no fixed "
                "order; set compute.device to cpu, or compute.deterministic to false"
            )
        return self
