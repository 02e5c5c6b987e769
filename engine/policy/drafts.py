"""Drafts of one policy: what its generator has written so far, by node, as text.

Invariant: a draft is a copy of tokens that are there already; it draws no random number and changes
no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from engine.events.drafts import MOST, TAIL_CHARACTERS, Draft, DraftWriter
from engine.policy.generators import Generator
from engine.policy.types import Request

TAIL_TOKENS = 1200
"""Tokens that are decoded of a draft, the last ones."""
_CUT = "\ufffd"
"""What the beginning of a character that is split over tokens is decoded to."""


class Drafts:
    """Writes the drafts of a generator's answers in flight; the generator calls `show`."""

    def __init__(self, generator: Generator, tokenizer: Any, writer: DraftWriter):
        self._generator, self._tokenizer, self._writer = generator, tokenizer, writer
        self._nodes: dict[int, tuple[str, int, int]] = {}
        """Agent, tree and node of each answer in flight, by ticket."""
        generator.observer = self.show

    def begin(self, tickets: Sequence[int], pairs: Sequence[tuple[str, Request]]) -> None:
        """Names the nodes of these answers; an answer that is no node of a logged tree has none."""
        for ticket, (agent, request) in zip(tickets, pairs, strict=True):
            if request.node is not None:
                self._nodes[ticket] = (agent, *request.node)

    def end(self, tickets: Iterable[int]) -> None:
        for ticket in tickets:
            self._nodes.pop(ticket, None)

    def show(self) -> None:
        """Writes all drafts if they are due."""
        if not self._nodes or not self._writer.is_due():
            return
        written = self._generator.outputs(TAIL_TOKENS)
        mine = sorted(self._nodes.keys() & written.keys())[-MOST:]
        self._writer.write([self._draft(ticket, *written[ticket]) for ticket in mine])

    def _draft(self, ticket: int, tokens: int, tail: Sequence[int]) -> Draft:
        agent, tree, node = self._nodes[ticket]
        text = self._tokenizer.decode(tail, skip_special_tokens=True)
        return Draft(tree, node, agent, tokens, text.rstrip(_CUT)[-TAIL_CHARACTERS:])
