"""Typed access to the metadata of a GGUF file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.policy.models.gguf.errors import CONVERT_AGAIN, refusal, shown
from engine.policy.models.gguf.header import Value
from engine.policy.models.load import ModelError

MOST_SIZE = 2**31 - 1
"""Most of any size of a model, as of the registry."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """Metadata of a file, each value checked when it is read. Every method raises `ModelError` for
    a value of another type or outside its bounds, and for a missing one without `default`."""

    path: Path
    values: dict[str, Value]

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def integer(
        self, key: str, default: int | None = None, least: int = 1, most: int = MOST_SIZE
    ) -> int:
        value = self._value(key, default)
        if type(value) is not int or not least <= value <= most:
            raise self.wrong(key, f"{shown(value)} is no whole number from {least} to {most:,}")
        return value

    def real(self, key: str, default: float | None = None) -> float:
        """Returns a finite number above 0, with the digits of an F32."""
        value = self._value(key, default)
        number = value if isinstance(value, float | int) and not isinstance(value, bool) else 0.0
        if not (math.isfinite(number) and number > 0):
            raise self.wrong(key, f"{shown(value)} is no number above 0")
        # The shortest decimal of the same F32: 1e-05, not 9.999999747378752e-06.
        return float(str(np.float32(number)))

    def text(self, key: str, default: str | None = None) -> str:
        value = self._value(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, f"{shown(value)} is no text")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self._value(key, default)
        if type(value) is not bool:
            raise self.wrong(key, f"{shown(value)} is no truth value")
        return value

    def texts(self, key: str) -> list[str]:
        value = self._value(key, None)
        if not isinstance(value, list):
            raise self.wrong(key, f"{shown(value)} is no array of texts")
        return value

    def numbers(self, key: str, kinds: str) -> np.ndarray:
        """Returns an array of numbers; `kinds` are the accepted NumPy kinds, for example `iu`."""
        value = self._value(key, None)
        if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
            raise self.wrong(key, f"{shown(value)} is no array of numbers of this kind")
        return value

    def optional_integer(self, key: str, most: int) -> int | None:
        """Returns a whole number from 0 to `most`, or None if the file does not have it."""
        return self.integer(key, least=0, most=most) if key in self else None

    def optional_text(self, key: str) -> str | None:
        return self.text(key) if key in self else None

    def wrong(self, key: str, fault: str, remedy: str = CONVERT_AGAIN) -> ModelError:
        """Returns the error of an entry."""
        return refusal(self.path, key, fault, remedy)

    def _value(self, key: str, default: Value | None) -> Value:
        value = self.values.get(key, default)
        if value is None:
            raise self.wrong(key, "is missing")
        return value
