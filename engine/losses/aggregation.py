"""Aggregation of the losses of a batch's tokens to one number.

With l_vt the loss of token t of sequence v, |v| its tokens, N the sequences of the batch:
    token_mean     sum_v sum_t l_vt / sum_v |v|      (DAPO, arXiv 2503.14476)
    sequence_mean  1/N sum_v (1/|v|) sum_t l_vt      (GRPO, arXiv 2402.03300; GSPO)
    sequence_sum   1/N sum_v (1/T) sum_t l_vt        (Dr. GRPO, arXiv 2503.20783)
T is a constant. In the first a long answer weighs more than a short one, in the second each of its
tokens weighs less, in the third every token weighs the same in any answer and any batch.

Invariant: a batch's mean is the sum of `summed` over its micro-batches, over the sum of `units`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.config.loss import Aggregation
from engine.losses.terms import lengths, masked_sum, sequences, tokens

if TYPE_CHECKING:
    from torch import Tensor


def summed(values_NL: Tensor, mask_NL: Tensor, kind: Aggregation, constant: int) -> Tensor:
    """Returns a scalar: the numerator that these rows add; `constant` is T, in tokens."""
    if kind is Aggregation.TOKEN_MEAN:
        return masked_sum(values_NL, mask_NL)
    sums_N = masked_sum(values_NL, mask_NL, dim=-1)
    return (sums_N / (lengths(mask_NL) if kind is Aggregation.SEQUENCE_MEAN else constant)).sum()


def share(flags_NL: Tensor, mask_NL: Tensor, kind: Aggregation) -> Tensor:
    """Returns a scalar like `summed`; divided by `units` it is a share of the batch, 0 to 1."""
    counted = Aggregation.SEQUENCE_MEAN if kind is Aggregation.SEQUENCE_SUM else kind
    return summed(flags_NL, mask_NL, counted, constant=1)


def units(mask_NL: Tensor, kind: Aggregation) -> int:
    """Returns what these rows add to the denominator: tokens or sequences."""
    return tokens(mask_NL) if kind is Aggregation.TOKEN_MEAN else sequences(mask_NL)
