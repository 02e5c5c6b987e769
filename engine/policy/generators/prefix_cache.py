"""Cache of prompts with their keys and values, looked up by the prefix of another prompt.

Children of one node have the same prompt, and all prompts of a tree begin with its statement.

Invariant: a match was computed from exactly the requested tokens (they are compared), with the
current weights: a change of weights must clear the cache.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.policy.generators.cache import RowMemory

BLOCK = 16
"""Tokens per block; prefixes match in whole blocks."""


@dataclass(frozen=True, slots=True)
class Known:
    """A prompt in a row of a memory, from column `first` on."""

    prompt: list[int]
    memory: RowMemory
    row: int
    first: int


@dataclass
class Prefixes:
    """The most recently used prompts, of up to `max_tokens` in all, padding included."""

    max_tokens: int
    _known: dict[int, Known] = field(default_factory=dict)
    _kept: OrderedDict[int, tuple[RowMemory, list[int]]] = field(default_factory=OrderedDict)

    def longest(self, prompt: Sequence[int]) -> tuple[Known, int] | None:
        """Returns the longest cached prefix of a prompt, and its length, which is always less than
        the prompt's, since the last token has to be run to get its logits."""
        found = None
        for length, key in _keys(prompt[:-1]):
            known = self._known.get(key)
            if known is None or known.prompt[:length] != prompt[:length]:
                break
            found = known, length
        if found:
            self._kept.move_to_end(id(found[0].memory))
        return found

    def keep(self, memory: RowMemory, prompts: Sequence[list[int]]) -> None:
        """Caches the prompts in the rows of a memory, flush right."""
        keys = []
        for row, prompt in enumerate(prompts):
            known = Known(prompt, memory, row, memory.end - len(prompt))
            for _, key in _keys(prompt):
                if self._known.setdefault(key, known) is known:
                    keys.append(key)
        self._kept[id(memory)] = (memory, keys)
        while sum(_tokens(each) for each, _ in self._kept.values()) > self.max_tokens:
            _, (_, forgotten) = self._kept.popitem(last=False)
            for key in forgotten:
                del self._known[key]

    def clear(self) -> None:
        self._known.clear()
        self._kept.clear()


def _keys(tokens: Sequence[int]) -> list[tuple[int, int]]:
    """Returns (length, hash) of every prefix that is a whole number of blocks."""
    keys, chain = [], 0
    for end in range(BLOCK, len(tokens) + 1, BLOCK):
        chain = hash((chain, *tokens[end - BLOCK : end]))
        keys.append((end, chain))
    return keys


def _tokens(memory: RowMemory) -> int:
    rows, columns = memory.capacity
    return rows * columns
