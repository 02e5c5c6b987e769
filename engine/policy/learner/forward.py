"""Log-probabilities of output tokens under a model: one forward pass over a micro-batch.

Rows are `padded`, stacked with prompts flush right, or `packed`, concatenated as a trie
(`engine.policy.learner.trie`), which may hold a prefix that rows share only once. The gradient of a
packed prefix is the sum over the rows that share it, as autograd forms it.

Invariant: `logprobs_NL[n, t]` is that of `output_ids[n][t]` at the temperature at which row n
was sampled, over the whole vocabulary, in either layout; values to the right of a row's output
have no meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from engine.policy.batching import left_pad, right_pad
from engine.policy.learner.rows import TrainingRow
from engine.policy.learner.segments import AttentionPlan, attending, plan_attention
from engine.policy.learner.trie import Trie
from engine.policy.models.chunked_logits import LogprobQuery, query_logprobs


@dataclass(frozen=True)
class RowTensors:
    """Inputs of a loss for a micro-batch, outputs flush left."""

    rows: tuple[TrainingRow, ...]
    """The source of each row n."""
    outputs_NL: Tensor
    mask_NL: Tensor
    rollout_logprobs_NL: Tensor
    advantages_NL: Tensor
    temperatures_N: Tensor
    columns: dict[str, Tensor]
    """Numbers of the rows, (N,) each, by name."""
    demonstrations_N: Tensor | None
    """True for rows that are demonstrations; None if none is."""


@dataclass(frozen=True)
class PaddedRows(RowTensors):
    """A micro-batch: prompts flush right, outputs flush left behind them."""

    ids: Tensor
    """(N, P + L)"""
    attention: Tensor
    positions: Tensor


@dataclass(frozen=True)
class PackedRows(RowTensors):
    """A micro-batch as one sequence of T tokens, without the last token of each row."""

    ids_1T: Tensor
    positions_1T: Tensor
    plan: AttentionPlan
    scored_Q: Tensor
    """Indices of the Q positions whose next token is scored, each once per temperature."""
    temperatures_Q: Tensor
    tokens_QR: Tensor
    """The R different tokens that follow there: siblings may begin with several."""
    answers_NL: Tensor
    """Index among the Q of the position before output t of row n..."""
    choices_NL: Tensor
    """... and index among the R of that output."""
    paths: tuple[np.ndarray, ...]
    """Of each row: the index among the T of each of its tokens."""


def pad_rows(rows: Sequence[TrainingRow], pad_id: int, device) -> PaddedRows:
    """Returns the tensors of one micro-batch."""
    prompts, prompt_mask = left_pad([row.prompt_ids for row in rows], pad_id, device)
    tensors = _row_tensors(rows, pad_id, device)
    attention = torch.cat([prompt_mask, tensors.mask_NL], dim=1)
    return PaddedRows(
        **vars(tensors),
        ids=torch.cat([prompts, tensors.outputs_NL], dim=1),
        attention=attention,
        positions=(attention.cumsum(1) - 1).clamp(min=0),
    )


def inputs_of(row: TrainingRow) -> list[int]:
    """Returns the tokens of a row that a model must read to score its output."""
    return [*row.prompt_ids, *row.output_ids[:-1]]


def pack_rows(rows: Sequence[TrainingRow], trie: Trie, pad_id: int, device) -> PackedRows:
    """Returns the tensors of one micro-batch; `trie` is of the rows' `inputs_of`, in order."""
    tensors = _row_tensors(rows, pad_id, device)
    scored: dict[tuple[int, float], int] = {}
    answers = [
        [
            scored.setdefault((position, row.temperature), len(scored))
            for position in path[len(row.prompt_ids) - 1 :][: len(row.output_ids)].tolist()
        ]
        for row, path in zip(rows, trie.paths, strict=True)
    ]
    width = tensors.outputs_NL.shape[1]
    answers_NL = right_pad(answers, width, 0, torch.long, device)
    tokens_QR, choices_NL = _choices(answers_NL, tensors.outputs_NL, len(scored))
    return PackedRows(
        **vars(tensors),
        ids_1T=torch.from_numpy(trie.ids([inputs_of(row) for row in rows]))[None].to(device),
        positions_1T=torch.from_numpy(trie.positions())[None].to(device),
        plan=plan_attention(trie, torch.device(device)),
        scored_Q=torch.tensor([position for position, _ in scored], device=device),
        temperatures_Q=torch.tensor([temperature for _, temperature in scored], device=device),
        tokens_QR=tokens_QR,
        answers_NL=answers_NL,
        choices_NL=choices_NL,
        paths=tuple(trie.paths),
    )


def output_logprobs(
    model: PreTrainedModel,
    rows: PaddedRows | PackedRows,
    entropy_gradient: bool = False,
    at_once: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns (logprobs_NL, entropy_NL), in nats; logprobs_NL with gradient, entropy_NL only with
    `entropy_gradient`.

    `at_once` is the most logits that exist at a time (`engine.policy.models.chunked_logits`); None
    is all of them.
    """
    if isinstance(rows, PackedRows):
        return _packed_logprobs(model, rows, entropy_gradient, at_once)
    # The output layer also runs on every row's last token, whose result is dropped.
    tokens_NW = torch.nn.functional.pad(rows.outputs_NL, (0, 1))
    temperatures_flat_N = rows.temperatures_N[:, None].expand_as(tokens_NW).flatten()
    logprobs_flat_N1, entropy_flat_N = query_logprobs(
        model,
        LogprobQuery(temperatures_flat_N, tokens_NW.flatten()[:, None], entropy_gradient),
        at_once,
        input_ids=rows.ids,
        attention_mask=rows.attention,
        position_ids=rows.positions,
        use_cache=False,
        logits_to_keep=tokens_NW.shape[1],
    )
    shape = tokens_NW.shape
    return logprobs_flat_N1.view(shape)[:, :-1], entropy_flat_N.view(shape)[:, :-1]


def _packed_logprobs(
    model: PreTrainedModel, rows: PackedRows, entropy_gradient: bool, at_once: int | None
) -> tuple[Tensor, Tensor]:
    with attending(model, rows.plan):
        logprobs_QR, entropy_Q = query_logprobs(
            model,
            LogprobQuery(rows.temperatures_Q, rows.tokens_QR, entropy_gradient),
            at_once,
            input_ids=rows.ids_1T,
            position_ids=rows.positions_1T,
            use_cache=False,
            logits_to_keep=rows.scored_Q,
        )
    return logprobs_QR[rows.answers_NL, rows.choices_NL], entropy_Q[rows.answers_NL]


def _choices(answers_NL: Tensor, tokens_NL: Tensor, positions: int) -> tuple[Tensor, Tensor]:
    """Returns (tokens_QR: the different tokens that follow each position, choices_NL: which of
    them follows in a row)."""
    stride = int(tokens_NL.max()) + 1
    pairs_K, inverse = torch.unique(answers_NL * stride + tokens_NL, return_inverse=True)
    answers_K = pairs_K // stride
    first_Q = torch.searchsorted(answers_K, torch.arange(positions, device=pairs_K.device))
    choices_K = torch.arange(len(pairs_K), device=pairs_K.device) - first_Q[answers_K]
    tokens_QR = tokens_NL.new_zeros(positions, int(choices_K.max()) + 1)
    tokens_QR[answers_K, choices_K] = pairs_K % stride
    return tokens_QR, choices_K[inverse]


def _row_tensors(rows: Sequence[TrainingRow], pad_id: int, device) -> RowTensors:
    width = max(len(row.output_ids) for row in rows)
    lengths_N = torch.tensor([len(row.output_ids) for row in rows], device=device)
    return RowTensors(
        rows=tuple(rows),
        outputs_NL=right_pad([row.output_ids for row in rows], width, pad_id, torch.long, device),
        mask_NL=(torch.arange(width, device=device)[None] < lengths_N[:, None]).long(),
        rollout_logprobs_NL=right_pad(
            [row.rollout_logprobs for row in rows], width, 0.0, torch.float32, device
        ),
        advantages_NL=_advantages(rows, width, device),
        temperatures_N=torch.tensor([row.temperature for row in rows], device=device),
        columns={
            name: torch.tensor([row.columns[name] for row in rows], dtype=torch.float32).to(device)
            for name in rows[0].columns
        },
        demonstrations_N=_demonstrations(rows, device),
    )


def _demonstrations(rows: Sequence[TrainingRow], device) -> Tensor | None:
    shown = [row.is_demonstration for row in rows]
    return torch.tensor(shown, device=device) if any(shown) else None


def _advantages(rows: Sequence[TrainingRow], width: int, device) -> Tensor:
    """Returns advantages_NL; a row with one advantage has it at all positions.

    Raises:
        ValueError: a row has several, but not one for each token of its output.
    """
    given = [row.advantage for row in rows]
    if not any(isinstance(advantage, list) for advantage in given):
        advantages_N = torch.tensor(given, dtype=torch.float32, device=device)
        return advantages_N[:, None].expand(-1, width)
    ragged = []
    for row, advantage in zip(rows, given, strict=True):
        own = advantage if isinstance(advantage, list) else [advantage] * len(row.output_ids)
        if len(own) != len(row.output_ids):
            raise ValueError(
                f"node {row.node} of tree {row.tree}: {len(own)} advantages of "
                f"{len(row.output_ids)} tokens; give one for each, or one for all"
            )
        ragged.append(own)
    return right_pad(ragged, width, 0.0, torch.float32, device)
