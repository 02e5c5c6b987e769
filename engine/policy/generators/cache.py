"""Keys and values of ragged rows in one block of memory, as a cache of transformers.

Rows are flush right: the newest token of every row is in the same column, so a step writes
one slice of columns in place, and no tensor grows. A row of L tokens fills the last L columns
before `end`; columns to the left of it are masked. As no row has gaps, a distance in columns is a
distance in positions, so causal and sliding masks are correct.

Invariants:
- Every column that a row may read was written, by a token or with zeros: masked columns are
  multiplied by 0, and uninitialized memory may be NaN, which times 0 is NaN. Columns from `end` on
  are written before they are read.
- All tokens of all rows are in columns from `start` on; columns left of it cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import Cache, DynamicCache, PreTrainedModel
from transformers.cache_utils import CacheLayerMixin, DynamicLayer, DynamicSlidingWindowLayer


@dataclass(frozen=True)
class Layout:
    """What a model caches per token: for each layer the slots of its keys and of its values.

    Slots of equal shape are in one block (slots, rows, heads, columns, width): rows and heads of a
    slot merge to one axis, over which attention multiplies without a copy.
    """

    blocks: tuple[tuple[int, int, int], ...]
    """(slots, heads, width) of each block."""
    keys: tuple[tuple[int, int], ...]
    """(block, slot) of each layer."""
    values: tuple[tuple[int, int], ...]
    sliding: tuple[bool, ...]
    dtype: torch.dtype
    bytes_per_token: int


def layout_of(model: PreTrainedModel, token: int) -> Layout | None:
    """Returns the layout of the model's keys and values, from a pass over one token; None if it
    caches anything else than one key and one value per token and layer."""
    ids = torch.full((1, 1), token, device=model.device)
    cache = model(input_ids=ids, use_cache=True, logits_to_keep=1).get("past_key_values")
    if type(cache) is not DynamicCache or not cache.layers:
        return None
    shapes: dict[tuple[int, int], int] = {}
    slots: list[list[tuple[int, int]]] = [[], []]
    counts: list[int] = []
    for layer in cache.layers:
        if type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer):
            return None
        for layer_slots, tensor in zip(slots, (layer.keys, layer.values), strict=True):
            if tensor is None or tensor.ndim != 4 or tensor.shape[0] != 1 or tensor.shape[2] != 1:
                return None
            block = shapes.setdefault((tensor.shape[1], tensor.shape[3]), len(shapes))
            counts += [0] * (len(shapes) - len(counts))
            layer_slots.append((block, counts[block]))
            counts[block] += 1
    dtype = cache.layers[0].keys.dtype
    blocks = tuple((n, *shape) for n, shape in zip(counts, shapes, strict=True))
    size = sum(n * heads * width for n, heads, width in blocks) * dtype.itemsize
    sliding = tuple(type(layer) is DynamicSlidingWindowLayer for layer in cache.layers)
    return Layout(blocks, tuple(slots[0]), tuple(slots[1]), sliding, dtype, size)


class RowMemory:
    """Keys and values of `rows` rows; `end` is the column where the next token is written."""

    def __init__(self, layout: Layout, rows: int, columns: int, end: int, device: torch.device):
        self.layout, self.device = layout, device
        self.rows, self.start, self.end = 0, end, end
        self.real_NS: Tensor | None = None
        """Mask of real tokens, while prompts of several lengths are written."""
        self.blocks = self._blocks(rows, columns)
        self._views: list[list[Tensor]] = []
        self.resize(0)

    def as_cache(self) -> Cache:
        """Returns a cache of transformers; the memory holds no reference to it, which avoids a
        cycle."""
        return Cache(layers=[RowLayer(self, number) for number in range(len(self.layout.keys))])

    @property
    def capacity(self) -> tuple[int, int]:
        """Allocated (rows, columns)."""
        return self.blocks[0].shape[1], self.blocks[0].shape[3]

    def resize(self, rows: int) -> None:
        """Sets the number of rows that are written from now on to the first `rows`."""
        self.rows = rows
        self._views = [list(block[:, :rows].unbind(0)) for block in self.blocks]

    def make_room(self, rows: int, columns_before: int, columns_after: int) -> None:
        """Ensures capacity for `rows` rows, `columns_before` columns left of `end` and
        `columns_after` from it on; otherwise moves everything to new memory.

        The capacity of rows grows by half at least, so that moves are rare.
        """
        has_rows, has_columns = self.capacity
        if rows <= has_rows and columns_before <= self.end <= has_columns - columns_after:
            return
        old, start, end = self.blocks, self.start, self.end
        before = max(columns_before, end - start)
        if rows > has_rows:
            has_rows = max(rows, has_rows * 3 // 2)
        self.blocks = self._blocks(has_rows, before + columns_after)
        self.end, self.start = before, before - (end - start)
        for block, old_block in zip(self.blocks, old, strict=True):
            block[:, : self.rows, :, self.start : self.end] = old_block[
                :, : self.rows, :, start:end
            ]
        self.resize(self.rows)

    def append(self, source: RowMemory, index: Sequence[int], longest: int) -> None:
        """Appends the rows of `source` with these indices, of at most `longest` tokens."""
        old_rows, rows, first = self.rows, self.rows + len(index), self.end - longest
        single = index[0] if len(set(index)) == 1 else None
        picked = torch.tensor(index, device=self.device)
        for block, other in zip(self.blocks, source.blocks, strict=True):
            columns = other[:, :, :, source.end - longest : source.end]
            # Children of one prompt are copied to their destination directly.
            copied = (
                columns.index_select(1, picked)
                if single is None
                else columns[:, single : single + 1]
            )
            block[:, old_rows:rows, :, first : self.end] = copied
            block[:, old_rows:rows, :, self.start : max(first, self.start)] = 0
            block[:, :old_rows, :, first : max(first, self.start)] = 0
        self.start = min(self.start, first)
        self.resize(rows)

    def load(self, row: int, to: int, source: RowMemory, at: tuple[int, int], length: int) -> None:
        """Copies `length` columns of another memory, from (row, column) `at` on, to those before
        `to`."""
        of, first = at
        for block, other in zip(self.blocks, source.blocks, strict=True):
            block[:, row, :, to - length : to] = other[:, of, :, first : first + length]

    def move(self, targets: Sequence[int], sources: Sequence[int], rows: int) -> None:
        """Moves rows from `sources` to `targets`; `rows` remain."""
        if targets:
            to, of = (torch.tensor(each, device=self.device) for each in (targets, sources))
            for block in self.blocks:
                window = block[:, :, :, self.start : self.end]
                window[:, to] = window[:, of]
        self.resize(rows)

    def put(self, slot: tuple[int, int], states: Tensor) -> Tensor:
        """Writes one slot's states (rows, heads, tokens, width); returns all of its columns."""
        view = self._views[slot[0]][slot[1]]
        end = self.end + states.shape[2]
        new = view[:, :, self.end : end]
        if self.real_NS is not None:
            states = torch.where(self.real_NS[:, None, :, None], states, new)
        new.copy_(states)
        return view[:, :, self.start : end]

    def clear(self, columns: int) -> None:
        """Fills the first columns of all rows with zeros."""
        for block in self.blocks:
            block[:, :, :, :columns] = 0

    def _blocks(self, rows: int, columns: int) -> list[Tensor]:
        return [
            torch.empty(
                slots, rows, heads, columns, width, dtype=self.layout.dtype, device=self.device
            )
            for slots, heads, width in self.layout.blocks
        ]


class RowLayer(CacheLayerMixin):
    """One layer of a `RowMemory`, with the interface of transformers."""

    def __init__(self, memory: RowMemory, number: int):
        super().__init__()
        self.memory = memory
        self.is_initialized = True
        self.is_sliding = memory.layout.sliding[number]
        self.of_keys, self.of_values = memory.layout.keys[number], memory.layout.values[number]

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Does nothing: memory is allocated from the start."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        memory = self.memory
        return memory.put(self.of_keys, key_states), memory.put(self.of_values, value_states)

    def get_seq_length(self) -> int:
        return self.memory.end - self.memory.start

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        return -1
