"""Verbs of the actors, and the typed handles by which they are called: one protocol per actor.

A verb is declared once, in the protocol of its actor, with the signature of the method that answers
it. A handle has each verb with `.remote(...)`, which returns immediately with a reference to the
result; any argument may also be a reference. An actor that only passes calls on to the object that
does the work has its methods made from the protocol (`forwards`): so a new verb is one declaration
here, and one method there.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from engine.policy.learner.objective import DEFAULT, Objective

if TYPE_CHECKING:  # a search of one process loads no Ray
    import numpy as np
    from ray import ObjectRef

    from engine.environments.types import Move, Settled
    from engine.policy.learner.rows import TrainingRow, UpdateStats
    from engine.policy.types import Answer, AnswerCall, Generation, Request, Size

    Weights = tuple[int, list[Any]]
    """A version, and the tensors of a policy."""
    State = dict[str, Any]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result", covariant=True)
Actor = TypeVar("Actor", bound=type)
_VERB = "__verb__"


class RemoteMethod(Protocol[Parameters, Result]):
    """A method of an actor."""

    def remote(
        self, *arguments: Parameters.args, **keywords: Parameters.kwargs
    ) -> ObjectRef[Result]: ...


def verb(
    method: Callable[Concatenate[Any, Parameters], Result],
) -> RemoteMethod[Parameters, Result]:
    """Declares a verb of a handle by the signature of the method that answers it."""
    setattr(method, _VERB, True)
    return cast("RemoteMethod[Parameters, Result]", method)


def verbs_of(handle: type) -> dict[str, Callable[..., Any]]:
    """Returns the declarations of a handle's verbs by name, those of its bases first."""
    attributes = {
        name: value for base in reversed(handle.__mro__) for name, value in vars(base).items()
    }
    return {name: value for name, value in attributes.items() if getattr(value, _VERB, False)}


def forwards(handle: type, to: str) -> Callable[[Actor], Actor]:
    """Gives an actor's class a method for each verb of `handle`, which calls the method of the same
    name of the actor's attribute `to`. A method that the class has itself stays."""

    def add(actor: Actor) -> Actor:
        for name, declared in verbs_of(handle).items():
            if name not in vars(actor):
                setattr(actor, name, _forwarding(name, declared, to))
        return actor

    return add


def _forwarding(name: str, declared: Callable[..., Any], to: str) -> Callable[..., Any]:
    @functools.wraps(declared)
    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        return getattr(getattr(self, to), name)(*arguments, **keywords)

    # Ray checks a call by the signature before it sends it.
    method.__dict__["__signature__"] = inspect.signature(declared)
    return method


class PolicyHandle(Protocol):
    """Handle of `engine.training.actors.PolicyActor`, whose verbs `engine.policy.host.PolicyHost`
    answers."""

    @verb
    def sizes(self) -> dict[str, Size]: ...

    @verb
    def too_long(self, statements: Sequence[str]) -> dict[int, str]: ...

    @verb
    def answer(self, call: AnswerCall) -> dict[str, list[Answer]]: ...

    @verb
    def write(
        self,
        requests: Mapping[int, tuple[str, Request]],
        seconds: float,
        urgent: Collection[int] = (),
        temperature: float | None = None,
    ) -> dict[int, Answer]: ...

    @verb
    def encode(
        self, agent: str, shown: Sequence[tuple[Request, str]]
    ) -> list[Generation | None]: ...

    @verb
    def entropies(self, owner: str, rows: Sequence[TrainingRow]) -> list[np.ndarray]: ...

    @verb
    def learn(
        self,
        owner: str,
        rows: Sequence[TrainingRow],
        progress: float,
        objective: Objective = DEFAULT,
    ) -> UpdateStats: ...

    @verb
    def give_weights(self, owner: str) -> Weights: ...

    @verb
    def take_weights(self, owner: str, given: Weights | ObjectRef[Weights]) -> None: ...

    @verb
    def end_step(self) -> None: ...

    @verb
    def save_model(self, owner: str, directory: Path) -> None: ...

    @verb
    def save(self, directory: Path) -> None: ...

    @verb
    def restore(self, directory: Path, as_fork: bool = False) -> list[str]: ...


class RankHandle(Protocol):
    """Handle of `engine.policy.learner.ranks.LearnerRank`."""

    @verb
    def offer(self) -> tuple[str, int]: ...

    @verb
    def join(self, host: str, port: int) -> int: ...

    @verb
    def update(
        self,
        rows: ObjectRef[Sequence[TrainingRow]],
        progress: float,
        objective: Objective = DEFAULT,
    ) -> tuple[UpdateStats, State]: ...

    @verb
    def state(self) -> State: ...

    @verb
    def load_state(self, weights: ObjectRef[State], given: ObjectRef[State]) -> None: ...


class VerifierHandle(Protocol):
    """Handle of `engine.rollout.verifier.Verifier`."""

    @verb
    def settle(self, moves: Sequence[Move]) -> list[Settled]: ...

    @verb
    def tier(self) -> str: ...


class NodeReaderHandle(Protocol):
    """Handle of the actor of `engine.run.cluster_readings` on another node."""

    @verb
    def read(self) -> dict[str, float]: ...
