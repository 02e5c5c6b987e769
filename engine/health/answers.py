"""Answers of a step's trees, and what of them rules count."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.events.states import StopReason
from engine.events.vocabulary import Event
from engine.health.repetition import repeated_tokens

FEWEST_REPEATED = 24
"""Repeated tokens at its end that make an answer a loop: fewer occur in tables of literals."""
MOST_OTHER = 0.5
"""Share of an answer before its repeats; a loop has at most this."""


@dataclass(frozen=True, slots=True)
class Answer:
    agent: str
    program: int
    """Number that equal programs have in common in every process; 0 without one."""
    cut: bool
    """Whether it reached a limit before its end."""
    loops: bool
    """Whether it reached its limit while it repeated itself."""

    @classmethod
    def of(cls, event: Event, tree: TreeAnswers) -> Answer:
        """Returns the facts of a `node.close`; takes the node's text from its tree."""
        payload, text = event.payload, tree.text
        tree.text = ()
        program = payload["program"]
        return cls(
            agent=tree.agents.pop(event.node, ""),
            program=fingerprint(program) if program else 0,
            cut=payload["stop"] != StopReason.END_OF_TEXT,
            loops=payload["stop"] == StopReason.MAX_TOKENS and repeats(text),
        )


@dataclass(slots=True)
class TreeAnswers:
    """Answers of one tree until it is credited."""

    problem: str
    agents: dict[int | None, str] = field(default_factory=dict)
    """Agent of each open node."""
    text: Sequence[str] = ()
    """Tokens of the node that closes next."""
    answers: list[Answer] = field(default_factory=list)
    scores: dict[int | None, float] = field(default_factory=dict)
    """Raw score of each verified node."""
    has_advantage: bool = False
    is_reshaped: bool = False
    """Whether a node's shaped reward differs from its score."""

    def is_flat(self) -> bool:
        """Returns whether nothing of the tree's scores and advantages differs."""
        return not self.has_advantage and len(self._scores()) < 2

    def has_failed(self) -> bool:
        """Returns whether no node has a score above 0."""
        return not any(self._scores())

    def differs(self) -> bool:
        """Returns whether the tree has different scores."""
        return len(self._scores()) > 1

    def _scores(self) -> set[float]:
        return set(self.scores.values())


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """Counts of one agent's answers in one step."""

    nodes: int
    programs: int
    """Answers with a program."""
    cut: int
    loops: int
    same: int
    """Answers with the most frequent program."""
    same_problems: int
    """Problems that this program answers."""
    problems: int
    """Problems with a program of the agent."""


def fingerprint(text: str) -> int:
    """Returns a number from 1 to 2**63 - 1 that follows from the text alone."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) >> 1 or 1


def facts_by_agent(trees: Sequence[TreeAnswers]) -> dict[str, AnswerFacts]:
    """Returns the counts of each agent over a step's trees."""
    by_agent: dict[str, list[tuple[str, Answer]]] = defaultdict(list)
    for tree in trees:
        for answer in tree.answers:
            by_agent[answer.agent].append((tree.problem, answer))
    return {agent: _facts(answers) for agent, answers in by_agent.items()}


def _facts(answers: Sequence[tuple[str, Answer]]) -> AnswerFacts:
    problems_of: dict[int, list[str]] = defaultdict(list)
    for problem, answer in answers:
        if answer.program:
            problems_of[answer.program].append(problem)
    most = max(problems_of.values(), key=len, default=[])
    return AnswerFacts(
        nodes=len(answers),
        programs=sum(map(len, problems_of.values())),
        cut=sum(answer.cut for _, answer in answers),
        loops=sum(answer.loops for _, answer in answers),
        same=len(most),
        same_problems=len(set(most)),
        problems=len({problem for problems in problems_of.values() for problem in problems}),
    )


def repeats(tokens: Sequence[str]) -> bool:
    """Returns whether a text ends in whole repeats of `FEWEST_REPEATED` tokens or more that leave
    at most `MOST_OTHER` of it."""
    ids = {token: index for index, token in enumerate(dict.fromkeys(tokens))}
    repeated = repeated_tokens([ids[token] for token in tokens])
    return repeated >= FEWEST_REPEATED and repeated >= (1 - MOST_OTHER) * len(tokens)
