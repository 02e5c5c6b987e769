"""Tests against transformers' own loading of the same files."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM

from engine.policy.models.gguf.convert import convert
from tests.engine.policy.gguf.tiny import ARCHITECTURES, content_of, tiny_model
from tests.engine.policy.gguf.vocabularies import byte_level
from tests.helpers.large import large_but

pytestmark = pytest.mark.slow

IDS = torch.arange(3, 30)[None]
_OPTIONS = {
    # What transformers assumes, as it does not read these from a file.
    "qwen3": {"head_dim": 128},
    "gemma3": {
        "head_dim": 256, "query_pre_attn_scalar": 256,
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        },
    },
}  # fmt: skip


PAIRS = [(name, kind) for name in ARCHITECTURES for kind in ("F32", "Q8_0", "Q5_K")]


@pytest.mark.parametrize(("architecture", "kind"), large_but(PAIRS[::2], PAIRS))
def test_logits_are_those_of_transformers(architecture, kind, tmp_path):
    vocabulary = byte_level()
    size = len(vocabulary["tokenizer.ggml.tokens"])
    model = tiny_model(architecture, size, **_OPTIONS.get(architecture, {}))
    content = content_of(model, architecture, kind, vocabulary)
    content.values["general.name"] = "tiny"
    if architecture == "llama":
        content.values["llama.rope.dimension_count"] = 64
    content.write(tmp_path / "tiny.gguf")
    convert(tmp_path / "tiny.gguf", tmp_path / "imported")
    theirs = AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file="tiny.gguf", dtype=torch.float32
    )
    ours = AutoModelForCausalLM.from_pretrained(tmp_path / "imported", dtype=torch.float32)
    with torch.no_grad():
        expected, logits = theirs(IDS).logits, ours(IDS).logits
    tolerance = 1e-5 if kind == "F32" else 2e-3 * float(expected.abs().max())  # stored as F16
    torch.testing.assert_close(logits, expected, rtol=0, atol=tolerance)
