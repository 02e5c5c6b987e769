"""State of the rows in flight, on the host: arrays with one index per row.

Invariant: indices 0 to `count` are in use; a row that ends is replaced by one of the last rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from engine.config.agents import SamplingConfig
from engine.policy.generators.counter_rng import uniforms
from engine.policy.generators.sampling import Settings
from engine.policy.types import PartialGeneration

AHEAD = 64
"""Random numbers that are generated at once for every row."""


@dataclass(frozen=True, slots=True)
class Order:
    """One requested answer, or one to carry on."""

    ticket: int
    answer: PartialGeneration
    """The answer so far."""
    limit: int
    """Most tokens in all: those of the settings, or what remains of the context."""
    stop_ids: tuple[int, ...]
    """All ids that end it."""
    version: int
    """Version that samples its next tokens."""


class Rows:
    """Arrays of the rows in flight, which grow as needed."""

    def __init__(self) -> None:
        self.count = 0
        self.orders: list[Order] = []
        self.started: list[float] = []
        self.written = np.zeros(0, np.int64)
        """Tokens generated so far, those of earlier pieces included."""
        self.limits = np.zeros(0, np.int64)
        self.last = np.zeros(0, np.int64)
        """The newest token."""
        self._seeds = np.zeros(0, np.int64)
        self._stops = np.full((0, 1), -1, np.int64)
        self._ids = np.zeros((0, 32), np.int64)
        self._logprobs = np.zeros((0, 32), np.float32)
        self._settings = np.zeros((0, 4), np.float32)
        self._random = np.zeros((0, AHEAD))
        self._next = AHEAD
        self._device_settings: dict[tuple[int, int, str], Settings] = {}

    def append(self, orders: Sequence[Order]) -> range:
        """Appends rows; returns their indices."""
        indices = range(self.count, self.count + len(orders))
        self._reserve(indices.stop, max(len(order.stop_ids) for order in orders))
        new = slice(indices.start, indices.stop)
        self.orders += orders
        self.started += [time.perf_counter()] * len(orders)
        self.written[new] = [len(order.answer.output_ids) for order in orders]
        self._make_room(int(self.written[new].max()))
        self.limits[new] = [order.limit for order in orders]
        self._seeds[new] = [order.answer.seed for order in orders]
        self._stops[new] = -1
        for index, order in zip(indices, orders, strict=True):
            self._stops[index, : len(order.stop_ids)] = order.stop_ids
            if tokens := len(order.answer.output_ids):
                self._ids[index, :tokens] = order.answer.output_ids
                self._logprobs[index, :tokens] = order.answer.logprobs
        self._settings[new] = [_settings(order.answer.sampling) for order in orders]
        self.count = indices.stop
        self._device_settings.clear()
        return indices

    def first_uniforms(self, indices: range) -> np.ndarray:
        """Returns the next random number of rows that were just appended; those after it are
        aligned with the other rows'."""
        new = slice(indices.start, indices.stop)
        made = uniforms(self._seeds[new], self.written[new], 1 + AHEAD - self._next)
        self._random[new, self._next :] = made[:, 1:]
        return made[:, 0]

    def next_uniforms(self) -> np.ndarray:
        """Returns the next random number of every row."""
        used = slice(0, self.count)
        if self._next == AHEAD:
            self._random[used] = uniforms(self._seeds[used], self.written[used], AHEAD)
            self._next = 0
        self._next += 1
        return self._random[used, self._next - 1]

    def record(self, indices: range, ids: np.ndarray, logprobs: np.ndarray) -> np.ndarray:
        """Records one token of every row of a range; returns the indices of those that end with
        it."""
        at, columns = slice(indices.start, indices.stop), self.written[indices.start : indices.stop]
        if len(columns):
            self._make_room(int(columns.max()))
        rows = np.arange(indices.start, indices.stop)
        self._ids[rows, columns] = ids
        self._logprobs[rows, columns] = logprobs
        self.last[at] = ids
        self.written[at] += 1
        stopped = (self._stops[at] == ids[:, None]).any(axis=1)
        return rows[stopped | (self.written[at] >= self.limits[at])]

    def output(self, index: int) -> tuple[list[int], list[float]]:
        """Returns the ids and log-probabilities generated so far."""
        length = self.written[index]
        return self._ids[index, :length].tolist(), self._logprobs[index, :length].tolist()

    def tail(self, index: int, most: int) -> tuple[int, list[int]]:
        """Returns the number of tokens generated so far, and the last `most` ids."""
        length = int(self.written[index])
        return length, self._ids[index, max(0, length - most) : length].tolist()

    def stopped(self, index: int) -> bool:
        """Returns whether the row's newest token ends it, rather than its length."""
        return int(self.last[index]) in self.orders[index].stop_ids

    def settings(self, indices: range, device: torch.device) -> Settings:
        """Returns the settings of a range of rows; one that no row uses is None."""
        key = (indices.start, indices.stop, str(device))
        if key not in self._device_settings:
            self._device_settings[key] = _device_settings(
                self._settings[indices.start : indices.stop], device
            )
        return self._device_settings[key]

    def remove(self, indices: Sequence[int]) -> tuple[list[int], list[int]]:
        """Frees these indices; returns (targets, sources) of the rows that move into them."""
        removed, remaining = set(indices), self.count - len(indices)
        targets = sorted(index for index in removed if index < remaining)
        sources = [index for index in range(remaining, self.count) if index not in removed]
        for array in (self.written, self.limits, self.last, self._seeds, self._stops, self._ids,
                      self._logprobs, self._settings, self._random):  # fmt: skip
            array[targets] = array[sources]
        for target, source in zip(targets, sources, strict=True):
            self.orders[target], self.started[target] = self.orders[source], self.started[source]
        del self.orders[remaining:], self.started[remaining:]
        self.count = remaining
        self._device_settings.clear()
        return targets, sources

    def _make_room(self, columns: int) -> None:
        """Ensures that a row of that many tokens has room for one more."""
        while columns >= self._ids.shape[1]:
            self._ids, self._logprobs = _doubled(self._ids), _doubled(self._logprobs)

    def _reserve(self, rows: int, stops: int) -> None:
        if stops > self._stops.shape[1]:
            more = np.full((len(self._stops), stops - self._stops.shape[1]), -1, np.int64)
            self._stops = np.concatenate([self._stops, more], axis=1)
        if rows <= len(self.written):
            return
        rows = max(rows, 2 * len(self.written), 8)
        for name in ("written", "limits", "last", "_seeds", "_stops", "_ids", "_logprobs",
                     "_settings", "_random"):  # fmt: skip
            array = getattr(self, name)
            grown = np.zeros((rows, *array.shape[1:]), array.dtype)
            grown[: len(array)] = array
            setattr(self, name, grown)


def _settings(sampling: SamplingConfig) -> tuple[float, float, float, float]:
    return (
        sampling.temperature,
        sampling.top_p if sampling.top_p < 1 else 2.0,
        sampling.top_k or math.inf,
        math.log(sampling.min_p) if sampling.min_p else -math.inf,
    )


def _device_settings(settings_N4: np.ndarray, device: torch.device) -> Settings:
    temperature, top_p, top_k, min_p = settings_N4.T

    def tensor(values: np.ndarray, used: bool) -> torch.Tensor | None:
        return torch.from_numpy(values.copy()).to(device) if used else None

    sizes = np.minimum(top_k, 2.0**31).astype(np.int64)
    return Settings(
        temperatures_N=tensor(temperature, bool((temperature != 1).any())),
        top_p_N=tensor(top_p, bool((top_p < 1).any())),
        top_k_N=tensor(sizes, bool(np.isfinite(top_k).any())),
        log_min_p_N=tensor(min_p, bool(np.isfinite(min_p).any())),
    )


def _doubled(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, np.zeros_like(array)], axis=1)
