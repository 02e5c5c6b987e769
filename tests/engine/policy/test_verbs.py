"""Tests of verbs: each is declared once, and the actor passes it on as it was called."""

import inspect
import pickle
from typing import Protocol

import pytest

from engine.policy.handles import PolicyHandle, forwards, verb, verbs_of
from engine.policy.host import PolicyHost
from engine.policy.types import AnswerCall, Request
from engine.problems.generator import make_problem
from engine.training.actors import PolicyActor

PROBLEM = make_problem(2, 0)[0]


class Scoring(Protocol):
    """A handle with one verb: its only declaration."""

    @verb
    def score(self, texts: list[str], scale: float = 1.0) -> list[float]: ...


class Scorer:
    """... and its only method."""

    def score(self, texts, scale=1.0):
        return [scale * len(text) for text in texts]


@forwards(Scoring, to="scorer")
class ScoringActor:
    def __init__(self):
        self.scorer = Scorer()


def test_a_new_verb_is_one_declaration_and_one_method():
    actor = ScoringActor()
    assert actor.score(["a", "bcd"], scale=2.0) == [2.0, 6.0]
    assert str(inspect.signature(ScoringActor.score)) == str(inspect.signature(Scoring.score))
    with pytest.raises(TypeError, match="volume"):
        actor.score(["a"], volume=2)


def test_an_actor_keeps_a_method_of_its_own():
    @forwards(Scoring, to="nothing")
    class Own:
        def score(self, texts):
            return texts

    assert Own().score(["a"]) == ["a"]


@pytest.mark.parametrize("name", list(verbs_of(PolicyHandle)))
def test_what_answers_a_verb_has_its_signature(name):
    def signature(owner):
        parameters = inspect.signature(getattr(owner, name)).parameters.values()
        # Ray adds a parameter of its own to the methods of a class that it has made an actor.
        return [(p.name, p.kind, p.default) for p in parameters if p.name != "_ray_trace_ctx"]

    assert signature(PolicyHost) == signature(PolicyHandle) == signature(PolicyActor)


def test_every_call_of_the_actor_is_a_verb():
    own = {name for name, value in vars(PolicyActor).items() if inspect.isfunction(value)}
    assert own - {"__init__"} == set(verbs_of(PolicyHandle)) and "answer" in own


def test_a_call_for_answers_is_one_value():
    call = AnswerCall({"oak": [Request(PROBLEM)]}, 0.5, stream=("eval", 3))
    assert pickle.loads(pickle.dumps(call)) == call
    other = call.of({"elm": []})
    assert (other.requests, other.temperature, other.stream) == ({"elm": []}, 0.5, ("eval", 3))
    with pytest.raises(AttributeError):
        call.temperature = 1.0
