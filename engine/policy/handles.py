"""Types of the handles by which actors are called: one protocol per actor class.

A handle has the methods of its class, each with `.remote(...)`, which returns immediately with a
reference to the result. Arguments are positional; any of them may also be a reference.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:  # a search of one process loads no Ray
    from ray import ObjectRef

    from engine.policy.learner.rows import TrainingRow, UpdateStats
    from engine.policy.types import Answer, Request, Size, Stream
    from engine.problems.problem import Problem
    from engine.sandbox.host.verify import Verification

    Weights = tuple[int, list[Any]]
    """A version, and the tensors of a policy."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result", covariant=True)


class RemoteMethod(Protocol[Parameters, Result]):
    """A method of an actor."""

    def remote(
        self, *arguments: Parameters.args, **keywords: Parameters.kwargs
    ) -> ObjectRef[Result]: ...


class PolicyHandle(Protocol):
    """Handle of `engine.training.actors.PolicyActor`."""

    sizes: RemoteMethod[[], dict[str, Size]]
    too_long: RemoteMethod[[Sequence[str]], dict[int, str]]
    answer: RemoteMethod[
        [Mapping[str, Sequence[Request]], float | None, bool, Stream | None],
        dict[str, list[Answer]],
    ]
    write: RemoteMethod[
        [Mapping[int, tuple[str, Request]], float, Collection[int]], dict[int, Answer]
    ]
    learn: RemoteMethod[[str, Sequence[TrainingRow], float], UpdateStats]
    give_weights: RemoteMethod[[str], Weights]
    take_weights: RemoteMethod[[str, ObjectRef[Weights]], None]
    end_step: RemoteMethod[[], None]
    save_model: RemoteMethod[[str, Path], None]
    save: RemoteMethod[[Path], None]
    restore: RemoteMethod[[Path, bool], list[str]]


class RankHandle(Protocol):
    """Handle of `engine.policy.learner.ranks.LearnerRank`."""

    offer: RemoteMethod[[], tuple[str, int]]
    join: RemoteMethod[[str, int], int]
    update: RemoteMethod[
        [ObjectRef[Sequence[TrainingRow]], float], tuple[UpdateStats, dict[str, Any]]
    ]
    state: RemoteMethod[[], dict[str, Any]]
    load_state: RemoteMethod[[ObjectRef[dict[str, Any]], ObjectRef[dict[str, Any]]], None]


class VerifierHandle(Protocol):
    """Handle of `engine.rollout.verifier.Verifier`."""

    verify: RemoteMethod[[Sequence[tuple[Problem, str]]], list[Verification]]
    tier: RemoteMethod[[], str]


class NodeReaderHandle(Protocol):
    """Handle of the actor of `engine.run.cluster_readings` on another node."""

    read: RemoteMethod[[], dict[str, float]]
