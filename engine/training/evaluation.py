"""Measures a team: each agent alone, its search, and independent samples on the same budget.

Public tests guide, private tests judge (mars2.md, sections 4 and 9). Invariant: nothing here
changes weights or enters a buffer, and nothing is drawn from the random numbers of training: an
evaluation is a function of the weights and of (seed, split, step).
"""

from __future__ import annotations

import math
import time
from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from engine.config import RunConfig, SearchConfig
from engine.events import EvaluationResult
from engine.inference.selection import Candidate, select_answer
from engine.metrics import standard_error
from engine.policy.exchange import Answer, Request, Stream
from engine.problems.problem import Problem
from engine.sandbox.verify import Verification
from engine.training.forest import Forest, public_score
from engine.training.rollout import Rollout
from engine.training.team import Team

Judged = tuple[Answer, Verification]


@dataclass
class Evaluator:
    """Evaluates the current or the starting weights of a team."""

    team: Team
    config: RunConfig
    should_stop: Callable[[], bool] = lambda: False

    def run(
        self,
        step: int,
        split: str,
        problems: Sequence[Problem],
        *,
        starting_weights: bool = False,
        search: bool = False,
    ) -> EvaluationResult:
        """Pass@1 of every agent and, with `search`, of the team on a budget of nodes.

        Problems of which a verification failed technically are left out of that figure.
        """
        started = time.monotonic()
        stream = (split, step)
        each = self.config.evaluation.samples_per_problem
        singles = self._samples(problems, each, starting_weights, (*stream, "alone"))
        agents = {name: _solved_shares(judged) for name, judged in singles.items()}
        rollouts = [pair for judged in singles.values() for row in judged for pair in row]
        tree = samples = None
        if search:
            tree, grown = self._tree(problems, starting_weights, step, (*stream, "tree"))
            samples, drawn = self._best_of_samples(problems, starting_weights, (*stream, "samples"))
            rollouts += grown + drawn
        return EvaluationResult(
            step=step,
            split=split,
            agents={name: _mean(shares) for name, shares in agents.items()},
            standard_errors={
                name: standard_error(_known(shares)) for name, shares in agents.items()
            },
            problems=len(problems),
            tree=tree,
            samples=samples,
            tree_nodes=self.config.evaluation.tree_nodes if search else 0,
            rollouts=len(rollouts),
            tokens=sum(len(answer.generation.output_ids) for answer, _ in rollouts),
            seconds=time.monotonic() - started,
        )

    def _samples(
        self, problems: Sequence[Problem], each: int, starting_weights: bool, stream: Stream
    ) -> dict[str, list[list[Judged]]]:
        """`each` independent samples per agent and problem, by agent, in the problems' order."""
        requests = [Request(problem) for problem in problems for _ in range(each)]
        temperature = self.config.evaluation.temperature
        everyone = dict.fromkeys(self.team.agents, requests)
        futures = self.team.answer(everyone, temperature, starting_weights, stream)
        by_agent = ChainMap(*self.team.get(futures, "agents to write"))
        answers = [by_agent[name] for name in self.team.agents]
        programs = [
            (request.problem, answer.program)
            for written in answers
            for request, answer in zip(requests, written, strict=True)
        ]
        verdicts = iter(self.team.get(self.team.verifier.verify.remote(programs), "sandbox"))
        judged = [[(answer, next(verdicts)) for answer in written] for written in answers]
        return {
            name: [rows[i : i + each] for i in range(0, len(rows), each)]
            for name, rows in zip(self.team.agents, judged, strict=True)
        }

    def _best_of_samples(
        self, problems: Sequence[Problem], starting_weights: bool, stream: Stream
    ) -> tuple[float, list[Judged]]:
        """The tree's budget as independent samples, shared out among the agents in turn."""
        budget, agents = self.config.evaluation.tree_nodes, len(self.team.agents)
        drawn = self._samples(problems, math.ceil(budget / agents), starting_weights, stream)
        by_problem = [
            [pair for turn in zip(*rows, strict=True) for pair in turn][:budget]
            for rows in zip(*drawn.values(), strict=True)
        ]
        return _mean([_selected(judged) for judged in by_problem]), list(chain(*by_problem))

    def _tree(
        self, problems: Sequence[Problem], starting_weights: bool, step: int, stream: Stream
    ) -> tuple[float, list[Judged]]:
        options = self.config.evaluation
        search = SearchConfig(
            nodes_per_tree=options.tree_nodes,
            nodes_in_flight=min(options.nodes_in_flight, options.tree_nodes),
            posterior=self.config.search.posterior,
            selection_order=self.config.search.selection_order,
        )
        seed = [self.config.seed, 0xEA1, step]
        forest = Forest(problems, tuple(self.team.agents), search, public_score, seed)
        Rollout(
            self.team,
            forest,
            should_stop=self.should_stop,
            temperature=options.temperature,
            starting_weights=starting_weights,
            stream=stream,
        ).run()
        grown = [
            [(tree.written[n].answer, tree.written[n].verification) for n in sorted(tree.written)]
            for tree in forest.trees
        ]
        return _mean([_selected(judged) for judged in grown]), list(chain(*grown))


def _selected(judged: Sequence[Judged]) -> float | None:
    """Whether the answer that public tests select is right; None if nothing was verified."""
    verdicts = [verification for _, verification in judged]
    chosen = select_answer(Candidate(n, public_score(v)) for n, v in enumerate(verdicts))
    return None if chosen is None else float(verdicts[chosen.node].passed)


def _solved_shares(judged: Sequence[Sequence[Judged]]) -> list[float | None]:
    """Per problem the share of its samples that pass every test."""
    shares = []
    for row in judged:
        scored = [v for _, v in row if public_score(v) is not None]
        shares.append(sum(v.passed for v in scored) / len(scored) if scored else None)
    return shares


def _mean(values: Sequence[float | None]) -> float:
    known = _known(values)
    return sum(known) / len(known) if known else 0.0


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]
