"""Log of a whole run without a model: real problems, search and credit, simulated agents.

An agent knows each step of a problem with a probability that grows as training proceeds, and a
refinement repairs one wrong step, so scores, trees and curves look as they do in a real run.
Everything is a deterministic function of the seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from engine.config.credit import CreditConfig
from engine.config.search import SearchConfig
from engine.credit.assign import TreeRecord, assign_credit
from engine.events import vocabulary as ev
from engine.problems.generator.compose import (
    PRIVATE_TESTS,
    PUBLIC_TESTS,
    Step,
    draw_input,
    draw_steps,
    program,
    run_steps,
    statement,
)
from engine.problems.generator.operations import BY_SOURCE
from engine.sandbox.guest.literals import to_literal
from engine.search.strategies import planted
from engine.search.tree import SearchTree

START = 1_763_700_000.0
"""Unix seconds of the first event."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Shape of the run. `skill` is the probability that a step is right, first and last."""

    seed: int = 0
    steps: int = 6
    trees: int = 12
    nodes: int = 8
    agents: tuple[str, ...] = ("oak", "fern")
    skill: tuple[float, float] = (0.45, 0.85)
    start: float = START
    planned_steps: int | None = None
    minutes: float | None = 6.0
    failure_share: float = 0.02
    """Share of nodes whose sandbox fails."""
    final: bool = True
    """Whether the run ends with its test evaluation and `finished`."""


@dataclass
class _Tree:
    id: int
    statement: str
    search: SearchTree
    steps: tuple[Step, ...]
    inputs: list
    guesses: dict[int, tuple[Step, ...]]
    lengths: dict[int, int]


class _Writer:
    """Numbers the events and assigns their times."""

    def __init__(self, start: float):
        self.seq = 0
        self.time = start

    def event(
        self, payload: ev.Payload, tree: int | None = None, node: int | None = None
    ) -> ev.Event:
        body = msgspec.to_builtins(payload)
        self.seq += 1
        return ev.Event(self.seq, self.time, body.pop("type"), tree, node, body)


def sample_events(sample: Sample) -> Iterator[ev.Event]:
    """Every event of the run, in order."""
    rng = np.random.default_rng(sample.seed)
    out = _Writer(sample.start)
    planned = sample.planned_steps or sample.steps
    yield out.event(ev.RunWaiting("starting Ray", 60.0))
    out.time += 3
    yield out.event(ev.RunWaiting(""))
    yield out.event(ev.RunStateChanged(ev.RunState.RUNNING))
    yield out.event(ev.RunPlanned(planned, list(sample.agents), sample.minutes))
    yield out.event(ev.LogLine("info", f"verifier checked itself; {planned} steps planned"))
    yield _evaluation(out, sample, rng, 0, 0.0, "validation")
    yield _evaluation(out, sample, rng, 0, 0.0, "test")
    trained = 0.0
    for step in range(1, sample.steps + 1):
        share = (step - 1) / max(1, planned - 1)
        began = out.time
        yield out.event(ev.StepStarted(step, sample.trees))
        closed = yield from _forest(out, sample, rng, step, share)
        yield from _updates(out, sample, rng, step, share, closed)
        trained += out.time - began
        yield _step_end(out, sample, step, closed, out.time - began, trained)
        yield out.event(ev.SystemSample(float(rng.uniform(80, 99)), 1450.0 + step))
        if step % 2 == 0:
            yield _evaluation(out, sample, rng, step, share, "validation")
            yield out.event(ev.CheckpointSaved(step, f"checkpoints/{step}"))
            yield out.event(ev.LogLine("info", f"checkpoint of step {step} saved"))
    if sample.final:
        yield _evaluation(out, sample, rng, sample.steps, 1.0, "test")
        yield out.event(ev.RunStateChanged(ev.RunState.FINISHED))


def _forest(out: _Writer, sample: Sample, rng: np.random.Generator, step: int, share: float):
    """Grows all trees of a step, one node each in turn; returns {tree id: [closed payloads]}."""
    trees, closed = [], {}
    for index in range(sample.trees):
        steps = draw_steps(rng, int(rng.integers(1, 4)))
        inputs = [draw_input(rng, steps[0].operation.source) for _ in range(8)]
        opened = ev.TreeOpened(
            step,
            f"generated-1-{sample.seed}-{step * 100 + index}",
            said := statement(steps, rng),
            len(steps),
        )
        search = planted(sample.agents, SearchConfig(), rng)
        tree = _Tree(out.seq + 1, said, search, steps, inputs, {0: ()}, {})
        trees.append(tree)
        closed[tree.id] = {}
        yield out.event(opened, tree.id)
    for _ in range(sample.nodes):
        wave = []
        for tree in trees:
            choice = tree.search.select()
            node = tree.search.open(choice)
            wave.append((tree, node, choice))
            opened = ev.NodeOpened(choice.agent, choice.parent, choice.depth, choice.draws)
            yield out.event(opened, tree.id, node)
        out.time += float(rng.uniform(0.5, 0.9))
        for tree, node, choice in wave:
            payload = _written(sample, rng, tree, node, choice, step, share)
            tree.search.close(node, payload.score)
            closed[tree.id][node] = (choice, payload)
            yield out.event(_text(tree, node, payload), tree.id, node)
            yield out.event(payload, tree.id, node)
    for tree in trees:
        yield from _credited(out, tree, closed[tree.id])
    return closed


def _written(sample, rng, tree: _Tree, node: int, choice, step: int, share: float) -> ev.NodeClosed:
    skill = sample.skill[0] + share * (sample.skill[1] - sample.skill[0])
    skill -= 0.06 * sample.agents.index(choice.agent)
    before = tree.guesses.get(choice.parent, ())
    guess = tuple(
        _guess(rng, right, before[index:], skill) for index, right in enumerate(tree.steps)
    )
    tree.guesses[node] = guess
    tree.lengths[node] = len(_tokens(program(guess)))
    reports, right = _judge(tree, guess)
    broken = rng.random() < sample.failure_share
    verdict = ev.Verdict.PASSED if right == len(tree.inputs) else ev.Verdict.WRONG_ANSWER
    if any(report.verdict is ev.Verdict.RUNTIME_ERROR for report in reports):
        verdict = ev.Verdict.RUNTIME_ERROR
    return ev.NodeClosed(
        program=program(guess),
        verdict=ev.Verdict.SANDBOX_FAILURE if broken else verdict,
        score=None if broken else float(right == len(tree.inputs)),
        fraction=0.0 if broken else right / len(tree.inputs),
        tests=[] if broken else reports,
        tokens=tree.lengths[node],
        stop=ev.StopReason.END_OF_TEXT,
        mean_logprob=-float(rng.uniform(0.15, 0.6)) * (1.2 - share),
        policy_version=step - 1,
        seconds=float(rng.uniform(0.02, 0.2)),
        error="the sandbox's worker was lost twice" if broken else "",
    )


def _text(tree: _Tree, node: int, payload: ev.NodeClosed) -> ev.NodeText:
    rng = np.random.default_rng([tree.id, node])  # separate: the run's own draws stay as they are
    tokens = _tokens(payload.program)
    logprobs = (-rng.exponential(-payload.mean_logprob, len(tokens))).round(4).tolist()
    return ev.NodeText(f"<|user|>{tree.statement}<|assistant|>", tokens, logprobs)


def _tokens(text: str) -> list[str]:
    return [*re.findall(r"\s*\w+|\s*[^\w\s]", text), "<|end|>"]


def _guess(rng: np.random.Generator, right: Step, parents: tuple[Step, ...], skill: float) -> Step:
    """What the agent writes for one step; `parents` starts with the parent's step, if any."""
    if parents and parents[0] == right:
        return right
    if rng.random() < skill:
        return right
    return parents[0] if parents else _wrong(rng, right)


def _wrong(rng: np.random.Generator, right: Step) -> Step:
    """Returns the step with another constant, or another operation on the same kind of value."""
    operation = right.operation
    if len(operation.constants) > 1 and rng.random() < 0.5:
        others = [constant for constant in operation.constants if constant != right.constant]
        return Step(operation, int(rng.choice(others)))
    options = [other for other in BY_SOURCE[operation.source] if other is not operation]
    # Prefers one with the same result type: most programs with another type raise.
    alike = [other for other in options if other.target == operation.target] or options
    chosen = alike[int(rng.integers(len(alike)))]
    return Step(chosen, int(rng.choice(chosen.constants)) if chosen.constants else 0)


def _judge(tree: _Tree, guess: tuple[Step, ...]) -> tuple[list[ev.TestReport], int]:
    reports, right = [], 0
    for index, value in enumerate(tree.inputs):
        expected = run_steps(tree.steps, value)
        try:
            actual, error = run_steps(guess, value), ""
        except Exception as problem:
            actual, error = None, f"{type(problem).__name__}: {problem}"
        passed = not error and actual == expected
        right += passed
        if index < PUBLIC_TESTS:
            verdict = ev.Verdict.PASSED if passed else ev.Verdict.WRONG_ANSWER
            reports.append(
                ev.TestReport(
                    ev.Verdict.RUNTIME_ERROR if error else verdict,
                    to_literal(value),
                    to_literal(expected),
                    "" if error else to_literal(actual),
                    error,
                )
            )
    assert len(tree.inputs) == PUBLIC_TESTS + PRIVATE_TESTS
    return reports, right


def _credited(out: _Writer, tree: _Tree, nodes: dict) -> Iterator[ev.Event]:
    record = TreeRecord(
        list(nodes),
        [choice.parent for choice, _ in nodes.values()],
        [choice.agent for choice, _ in nodes.values()],
        [payload.score for _, payload in nodes.values()],
        [payload.tokens for _, payload in nodes.values()],
    )
    credit = assign_credit(record, CreditConfig(), 1024)
    for node, shaped, advantage in zip(nodes, credit.shaped_N, credit.advantages_N, strict=True):
        if not np.isnan(shaped):
            yield out.event(ev.NodeCredited(float(shaped), float(advantage)), tree.id, node)
    scores = [payload.score for _, payload in nodes.values() if payload.score is not None]
    mean = float(np.mean(scores)) if scores else 0.0
    yield out.event(ev.TreeClosed(len(nodes), 1.0 in scores, mean, credit.filtered), tree.id)


def _updates(out, sample, rng, step: int, share: float, closed) -> Iterator[ev.Event]:
    out.time += float(rng.uniform(0.6, 1.1))
    trees = list(closed)
    for index, agent in enumerate(sample.agents):
        yield out.event(
            ev.AgentUpdated(
                agent=agent, step=step, version=step, nodes=sample.trees * sample.nodes // 2,
                loss=float(rng.normal(0, 0.01)), policy_loss=float(rng.normal(0, 0.01)),
                kl=0.02 * share + float(rng.uniform(0, 0.004)) * (1 + index),
                clip_fraction=float(rng.uniform(0.05, 0.2)),
                entropy=0.62 - 0.3 * share + float(rng.normal(0, 0.015)) + 0.06 * index,
                gradient_norm=float(rng.uniform(0.4, 1.4)), learning_rate=5e-4, lag=0.0,
                mismatch=float(rng.uniform(0.001, 0.004)), trees=trees,
            )
        )  # fmt: skip
        for tree, nodes in closed.items():
            mine = [n for n, (choice, _) in nodes.items() if choice.agent == agent]
            if mine:
                learned = [_token_stats(tree, node, nodes[node][1].tokens) for node in mine]
                yield out.event(ev.TreeLearned(agent, step, step, learned), tree)


def _token_stats(tree: int, node: int, tokens: int) -> ev.LearnedNode:
    rng = np.random.default_rng([tree, node, 1])  # a separate generator, as for the texts
    entropy = rng.exponential(0.4, tokens).round(3).tolist()
    return ev.LearnedNode(node, entropy, rng.lognormal(0, 0.03, tokens).round(3).tolist())


def _step_end(out, sample, step, closed, seconds: float, trained: float) -> ev.Event:
    nodes = [pair for tree in closed.values() for pair in tree.values()]
    by_agent = {
        agent: [p.score for c, p in nodes if c.agent == agent and p.score is not None]
        for agent in sample.agents
    }
    scores = [score for values in by_agent.values() for score in values]
    solved = [any(p.score == 1.0 for _, p in tree.values()) for tree in closed.values()]
    return out.event(
        ev.StepEnded(
            step=step,
            seconds=seconds,
            phases={"generate": seconds * 0.55, "verify": seconds * 0.17, "credit": seconds * 0.01,
                    "learn": seconds * 0.24, "sync": seconds * 0.03},
            nodes=len(nodes),
            reward=float(np.mean(scores)),
            solved=float(np.mean(solved)),
            node_share={a: sum(c.agent == a for c, _ in nodes) / len(nodes) for a in sample.agents},
            reward_by_agent={a: float(np.mean(v)) for a, v in by_agent.items() if v},
            filtered_trees=sum(len({p.score for _, p in t.values()}) < 2 for t in closed.values()),
            trees=len(closed),
            dropped_nodes=sum(p.score is None for _, p in nodes),
            tokens=sum(p.tokens for _, p in nodes),
            training_seconds=trained,
        )
    )  # fmt: skip


def _families(alone: dict[str, float], problems: int, best: float) -> dict[str, ev.FamilyFigures]:
    return {
        family: ev.FamilyFigures(
            problems=problems // 2,
            agents={agent: share * value for agent, value in alone.items()},
            standard_errors=dict.fromkeys(alone, 0.02),
            tree=share * (best + 0.55 * (1 - best)),
            samples=share * (best + 0.35 * (1 - best)),
        )
        for family, share in (("stated", 1.0), ("underspecified", 0.3))
    }


def _evaluation(out, sample, rng, step: int, share: float, split: str) -> ev.Event:
    out.time += 1.5
    skill = sample.skill[0] + share * (sample.skill[1] - sample.skill[0])
    alone = {
        agent: float(np.clip(skill**1.6 - 0.05 * index + rng.normal(0, 0.012), 0, 1))
        for index, agent in enumerate(sample.agents)
    }
    problems = 300 if split == "test" else 100
    best = max(alone.values())
    return out.event(
        ev.EvaluationResult(
            step=step,
            split=split,
            agents=alone,
            standard_errors={a: float(np.sqrt(p * (1 - p) / problems)) for a, p in alone.items()},
            problems=problems,
            tree=best + 0.55 * (1 - best),
            samples=best + 0.35 * (1 - best),
            tree_nodes=8,
            rollouts=problems * 10,
            tokens=problems * 300,
            seconds=1.5,
            families=_families(alone, problems, best),
        )
    )
