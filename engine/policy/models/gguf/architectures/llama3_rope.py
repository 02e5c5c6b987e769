"""Rotary scaling of Llama 3.1 and later, which a file states as a tensor of factors.

llama.cpp's converter evaluates the four numbers of the scaling (`factor`, `low_freq_factor`,
`high_freq_factor`, `original_max_position_embeddings`) to one divisor per rotary frequency,
`rope_freqs.weight`. transformers needs the four numbers: `factor` is the largest divisor, the other
three are those of every released model, and the divisors that follow from them must be the file's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LOW, HIGH, OLD_CONTEXT = 1.0, 4.0, 8192
_TOLERANCE = 1e-3


def llama3_parameters(divisors: np.ndarray, base: float) -> dict[str, Any] | None:
    """Returns the rotary settings of `divisors`, one per frequency, highest frequency first; None
    if no settings of transformers give them."""
    if np.all(divisors == 1.0):
        return {"rope_type": "default", "rope_theta": base}
    factor = round(float(divisors.max()), 3)
    if not np.allclose(divisors, _divisors(len(divisors), base, factor), rtol=_TOLERANCE):
        return None
    return {
        "rope_type": "llama3",
        "rope_theta": base,
        "factor": factor,
        "low_freq_factor": LOW,
        "high_freq_factor": HIGH,
        "original_max_position_embeddings": OLD_CONTEXT,
    }


def _divisors(count: int, base: float, factor: float) -> np.ndarray:
    wavelengths = 2 * np.pi * base ** (np.arange(count) / count)
    smooth = np.clip((OLD_CONTEXT / wavelengths - LOW) / (HIGH - LOW), 0.0, 1.0)
    return 1 / ((1 - smooth) / factor + smooth)
