"""Tests that an imported model computes what the dequantised tensors of its file compute."""

from __future__ import annotations

import pytest
import torch

from engine.policy.models.gguf.convert import convert
from engine.policy.models.load import load_policy
from tests.engine.policy.gguf.tiny import ARCHITECTURES, KINDS, content_of, tiny_model
from tests.engine.policy.gguf.vocabularies import byte_level
from tests.helpers.large import large_but

IDS = torch.arange(3, 30)[None]
_STORED = {"F32": torch.float32, "BF16": torch.bfloat16}


def _rounded(model, kind):
    """Rounds the matrices of a model to the dtype in which an import stores them."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.data = parameter.to(_STORED.get(kind, torch.float16)).float()


PAIRS = [(architecture, kind) for architecture in ARCHITECTURES for kind in KINDS]


@pytest.mark.parametrize(("architecture", "kind"), large_but(PAIRS[::3], PAIRS))
def test_logits_are_those_of_the_dequantised_tensors(architecture, kind, tmp_path):
    vocabulary = byte_level()
    model = tiny_model(architecture, len(vocabulary["tokenizer.ggml.tokens"]))
    content_of(model, architecture, kind, vocabulary).write(tmp_path / "tiny.gguf")
    convert(tmp_path / "tiny.gguf", tmp_path / "imported")
    imported = load_policy(str(tmp_path / "imported")).model
    with torch.no_grad():
        unrounded = model(IDS).logits
        _rounded(model, kind)
        expected, logits = model(IDS).logits, imported(IDS).logits
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)
    assert expected.abs().max() > 0.5
    torch.testing.assert_close(logits, unrounded, rtol=0, atol=2e-2 * float(unrounded.abs().max()))
