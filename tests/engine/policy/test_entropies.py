"""Tests of the entropies of a policy at the output tokens of rows."""

import numpy as np
import pytest
import torch

from engine.policy.entropies import entropies
from engine.policy.learner.rows import TrainingRow
from engine.policy.models.load import load_policy
from tests.helpers.policies import tiny_policy

ROWS = [
    TrainingRow([5, 6, 7], [8, 9], [0.0] * 2, 0.0, 0),
    TrainingRow([5], [10, 11, 12, 13], [0.0] * 4, 0.0, 0, temperature=0.5),
    TrainingRow([20, 21, 22, 23, 24], [25], [0.0], 0.0, 0, temperature=2.0),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    loaded = load_policy(str(tiny_policy(tmp_path_factory.mktemp("model"), 3)), "cpu", "float64")
    return loaded.model.eval()


def expected(model, row):
    """-sum p log p of the whole softmax at the temperature, token by token."""
    made = []
    for count in range(len(row.output_ids)):
        ids = torch.tensor([[*row.prompt_ids, *row.output_ids[:count]]])
        with torch.no_grad():
            logits = model(ids).logits[0, -1] / row.temperature
        p = torch.softmax(logits, 0)
        made.append(float(-(p * p.log()).sum()))
    return made


@pytest.mark.parametrize("max_tokens", [1, 12, 4096])
def test_they_are_those_of_the_whole_softmax_in_any_division_into_passes(model, max_tokens):
    made = entropies(model, ROWS, 0, max_tokens)
    assert [one.dtype for one in made] == [np.float32] * 3
    for row, entropies_L in zip(ROWS, made, strict=True):
        assert entropies_L.tolist() == pytest.approx(expected(model, row), rel=1e-6)


def test_of_no_rows_there_are_none(model):
    assert entropies(model, [], 0, 4096) == []
