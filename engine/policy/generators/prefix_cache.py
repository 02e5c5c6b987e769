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
class CachedPrompt:
    """A prompt in a row of a memory, from column `first` on."""

    prompt: list[int]
    memory: RowMemory
    row: int
    first: int


@dataclass
class PrefixCache:
    """The most recently used prompts, of up to `max_tokens` in all, padding included."""

    max_tokens: int
    _by_prefix: dict[int, CachedPrompt] = field(default_factory=dict)
    _memories: OrderedDict[int, tuple[RowMemory, list[int]]] = field(default_factory=OrderedDict)

    def match(self, prompt: Sequence[int]) -> tuple[CachedPrompt, int] | None:
        """Returns the longest cached prefix of a prompt, and its length, which is always less than
        the prompt's, since the last token has to be run to get its logits."""
        match = None
        for length, key in _keys(prompt[:-1]):
            cached = self._by_prefix.get(key)
            if cached is None or cached.prompt[:length] != prompt[:length]:
                break
            match = cached, length
        if match:
            self._memories.move_to_end(id(match[0].memory))
        return match

    def insert(self, memory: RowMemory, prompts: Sequence[list[int]]) -> None:
        """Caches the prompts in the rows of a memory, flush right."""
        keys = []
        for row, prompt in enumerate(prompts):
            cached = CachedPrompt(prompt, memory, row, memory.end - len(prompt))
            for _, key in _keys(prompt):
                if self._by_prefix.setdefault(key, cached) is cached:
                    keys.append(key)
        self._memories[id(memory)] = (memory, keys)
        while sum(_tokens(each) for each, _ in self._memories.values()) > self.max_tokens:
            _, (_, evicted) = self._memories.popitem(last=False)
            for key in evicted:
                del self._by_prefix[key]

    def clear(self) -> None:
        self._by_prefix.clear()
        self._memories.clear()


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
