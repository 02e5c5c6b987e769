"""Tests of the scheduler's states and orders, with sources that complete what the test says."""

from concurrent.futures import Future
from itertools import count

import pytest

from engine.environments.types import Settled
from engine.events.vocabulary import StopReason, Verdict
from engine.policy.types import Answer, Generation, Request
from engine.problems.generator import make_problem
from engine.rollout.scheduler import Demand, Order, Scheduler, Task, TaskState
from engine.sandbox.host.verify import Verification

PROBLEM = make_problem(2, 1)[0]
PASSED = Settled(Verification(Verdict.PASSED, 1.0, (), 0, True))
NOT_PASSED = Settled(Verification(Verdict.WRONG_ANSWER, 0.0, (), 0, False))


def answer(text):
    return Answer(Generation([1], [2], [0.0], StopReason.END_OF_TEXT, 0, 0.0), text)


class Answers:
    """One call per task; `sent` has the demand of each `send`."""

    def __init__(self):
        self.calls, self.numbers, self.queued, self.sent = [], {}, [], []

    def submit(self, number, task):
        self.queued.append(number)

    def send(self, demand):
        self.sent.append(demand)
        for number in self.queued:
            call = Future()
            self.numbers[call] = number
            self.calls.append(call)
        self.queued = []

    def take(self, ended):
        mine = [call for call in ended if call in self.calls]
        self.calls = [call for call in self.calls if call not in mine]
        return {self.numbers[call]: call.result() for call in mine}


class Verdicts:
    """One call per program; verdicts of other tickets stay for their owner."""

    def __init__(self):
        self.calls, self.tickets, self.programs, self.known = [], {}, {}, {}
        self.next = count()

    def submit(self, programs):
        tickets = []
        for _, _, program in programs:
            call = Future()
            self.tickets[call] = next(self.next)
            self.programs[program] = call
            self.calls.append(call)
            tickets.append(self.tickets[call])
        return tickets

    def take(self, ended, tickets):
        for call in [call for call in ended if call in self.calls]:
            self.calls.remove(call)
            self.known[self.tickets[call]] = call.result()
        return {ticket: self.known.pop(ticket) for ticket in list(tickets) if ticket in self.known}


class Scene:
    """A scheduler whose waits complete one scripted event each: `write N` or `verify N`."""

    def __init__(self, order, script, verdicts=None, answers=None):
        self.answers, self.verdicts = answers or Answers(), verdicts or Verdicts()
        self.script, self.names = iter(script), []
        self.scheduler = Scheduler(order, self.answers, self.verdicts, self.wait)

    def wait(self, calls, name):
        self.names.append(name)
        verb, what = next(self.script).split()
        if verb == "write":
            call = next(call for call in calls if self.answers.numbers.get(call) == int(what))
            call.set_result(answer(what))
        elif verb == "verify":
            call = self.verdicts.programs[what]
            call.set_result(PASSED)
        else:
            call = next(call for call in calls if call is self.other)
            call.set_result(NOT_PASSED)
        return [call]

    def submit(self, *marks):
        self.scheduler.submit(Task("oak", Request(PROBLEM), mark) for mark in marks)

    def advance(self, **options):
        return [done.task.mark for done in self.scheduler.advance(**options)]


def test_waves_return_whole_and_in_the_order_of_submission():
    scene = Scene(
        Order.WAVES, ["write 1", "verify 1", "write 2", "write 0", "verify 0", "verify 2"]
    )
    scene.submit("a", "b", "c")
    assert scene.advance() == ["a", "b", "c"]
    assert scene.scheduler.is_idle and scene.advance() == []


def test_the_continuous_order_returns_each_verdict_as_it_comes():
    scene = Scene(Order.CONTINUOUS, ["write 1", "verify 1", "write 0", "verify 0"])
    scene.submit("a", "b")
    states = [[scene.scheduler.state(number) for number in (0, 1)]]
    returned = []
    for _ in range(4):
        returned.append(scene.advance())
        states.append([scene.scheduler.state(number) for number in (0, 1)])
    assert returned == [[], ["b"], [], ["a"]]
    flight, pending = TaskState.IN_FLIGHT, TaskState.PENDING
    assert states == [
        [flight, flight],
        [flight, pending],
        [flight, None],
        [pending, None],
        [None, None],
    ]
    assert scene.names == ["agents to write"] * 3 + ["sandbox"]


def test_answers_and_verdicts_of_discarded_tasks_are_ignored():
    scene = Scene(Order.CONTINUOUS, ["write 0", "write 1", "verify 0", "write 2", "verify 2"])
    scene.submit("pending", "in flight", "other")
    scene.advance()
    scene.scheduler.discard(lambda task: task.mark != "other")
    assert [scene.advance() for _ in range(4)] == [[], [], [], ["other"]]
    assert list(scene.verdicts.programs) == ["0", "2"] and scene.scheduler.is_idle


def test_a_concurrent_call_ends_a_wait_and_keeps_the_tasks():
    scene = Scene(Order.CONTINUOUS, ["other -", "write 0", "verify 0"])
    scene.submit("a")
    scene.other = Future()
    scene.scheduler.alongside = [scene.other]
    assert scene.advance() == [] and scene.scheduler.alongside == []
    assert scene.scheduler.state(0) is TaskState.IN_FLIGHT
    assert (scene.advance(), scene.advance()) == ([], ["a"])


def test_two_schedulers_of_one_sandbox_take_their_own_verdicts():
    """As an evaluation does while a later step's trees are being verified."""
    verdicts = Verdicts()
    carried = Scene(Order.CONTINUOUS, ["write 0"], verdicts)
    carried.submit("carried")
    carried.advance()
    waves = Scene(Order.WAVES, ["write 1", "other -", "write 0", "verify 0", "verify 1"], verdicts)
    waves.submit("a", "b")
    (waves.other,) = verdicts.calls
    assert waves.advance() == ["a", "b"]
    (done,) = carried.scheduler.advance()  # without another wait
    assert done.settled is NOT_PASSED


def test_agents_are_sent_for_before_the_sandbox_and_know_what_is_coming():
    scene = Scene(Order.CONTINUOUS, ["write 0"])
    demands = []

    def demand():
        demands.append((len(scene.scheduler.pending), len(scene.verdicts.programs)))
        return Demand(list(scene.scheduler.in_flight), len(scene.scheduler.pending))

    scene.scheduler.demand = demand
    scene.submit("a", "b")
    scene.advance()
    assert demands == [(0, 0), (1, 0)]
    assert scene.answers.sent == [Demand([0, 1], 0), Demand([1], 1)]


def test_the_phase_of_a_wait_is_that_of_its_error():
    scene = Scene(Order.CONTINUOUS, [])
    scene.submit("a")
    phases = {}
    with pytest.raises(StopIteration) as failure:
        scene.advance(phases=phases)
    assert failure.value.phase == "generate" and phases["generate"] >= 0.0
