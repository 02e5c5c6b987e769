"""Tests of dequantisation against ggml's formulas, and of the dtype in which values are stored."""

from __future__ import annotations

import json
import struct

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from safetensors.numpy import load_file

from engine.policy.models.gguf.convert import convert
from engine.policy.models.gguf.dequantise import LARGEST_F16, Dtype, stored_values
from engine.policy.models.gguf.header import TensorInfo
from engine.policy.models.load import ModelError
from tests.engine.policy.gguf.blocks import FORMULAS
from tests.engine.policy.gguf.tiny import QUANTISED, content_of, quantised, tiny_model
from tests.engine.policy.gguf.vocabularies import byte_level

BLOCKS = 24
_HALVES = {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}


def random_rows(kind: str) -> np.ndarray:
    """Returns one row of blocks of random bits, their scales finite and of either sign."""
    random = np.random.default_rng(7)
    _, size = gguf.GGML_QUANT_SIZES[Kind[kind]]
    blocks = random.integers(0, 256, (BLOCKS, size), np.uint8)
    for at in _HALVES.get(kind, (0,)):
        scales = random.normal(0, 0.01, (BLOCKS, 1)).astype("<f2")
        blocks[:, at : at + 2] = scales.view(np.uint8)
    return blocks.reshape(1, -1)


def info_of(kind: str, rows: np.ndarray) -> TensorInfo:
    numbers, size = gguf.GGML_QUANT_SIZES[Kind[kind]]
    shape = (rows.shape[0], rows.shape[1] // size * numbers)
    return TensorInfo("a.weight", Kind[kind], shape, 0, rows.nbytes)


@pytest.mark.parametrize("kind", QUANTISED)
def test_values_are_those_of_ggmls_formula(kind, tmp_path):
    rows = random_rows(kind)
    _, size = gguf.GGML_QUANT_SIZES[Kind[kind]]
    expected = np.array([FORMULAS[kind](block.tobytes()) for block in rows.reshape(-1, size)])
    values = stored_values(tmp_path, info_of(kind, rows), rows, Dtype.F32)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(values.ravel(), expected.ravel(), rtol=0, atol=1e-6 * scale)
    halves = stored_values(tmp_path, info_of(kind, rows), rows, Dtype.F16)
    assert halves.dtype == np.float16
    np.testing.assert_array_equal(halves, values.astype(np.float16))


@pytest.mark.parametrize("kind", QUANTISED)
def test_the_smallest_scales_do_not_underflow(kind, tmp_path):
    rows = random_rows(kind)
    _, size = gguf.GGML_QUANT_SIZES[Kind[kind]]
    blocks = rows.reshape(-1, size)
    for at in _HALVES.get(kind, (0,)):
        blocks[:, at : at + 2] = np.full((BLOCKS, 1), 2.0**-24, "<f2").view(np.uint8)
    exact = stored_values(tmp_path, info_of(kind, rows), rows, Dtype.F32)
    halves = stored_values(tmp_path, info_of(kind, rows), rows, Dtype.F16).astype(np.float64)
    np.testing.assert_array_equal(halves == 0, exact == 0)
    np.testing.assert_allclose(halves, exact, rtol=2.0**-11, atol=0)


def stored_tensors(folder) -> dict[str, tuple[str, list[int]]]:
    content = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    return {name: (v["dtype"], v["data_offsets"]) for name, v in header.items() if "dtype" in v}


def tiny_content(kind: str):
    vocabulary = byte_level()
    model = tiny_model("llama", len(vocabulary["tokenizer.ggml.tokens"]))
    return content_of(model, "llama", kind, vocabulary)


@pytest.mark.parametrize(
    ("kind", "stored", "named"),
    [
        ("F32", "F32", "float32"),
        ("F16", "F16", "float16"),
        ("BF16", "BF16", "bfloat16"),
        ("Q5_0", "F16", "float16"),
    ],
)
def test_matrices_have_the_dtype_of_their_type_and_norms_stay_f32(kind, stored, named, tmp_path):
    convert(tiny_content(kind).write(tmp_path / "a.gguf"), tmp_path / "out")
    for name, (dtype, _) in stored_tensors(tmp_path / "out").items():
        assert dtype == ("F32" if "norm" in name else stored), name
    assert json.loads((tmp_path / "out/config.json").read_text())["dtype"] == named


def test_a_quantised_tensor_above_f16_becomes_f32_as_a_whole(tmp_path):
    content = tiny_content("Q8_0")
    name = "blk.1.ffn_up.weight"
    rows = content.tensors[name][0].copy()
    rows[5, :2] = np.array([60000.0], "<f2").view(np.uint8)  # times up to 127
    content.tensors[name] = (rows, Kind.Q8_0)
    convert(content.write(tmp_path / "a.gguf"), tmp_path / "out")
    stored = stored_tensors(tmp_path / "out")
    assert stored["model.layers.1.mlp.up_proj.weight"][0] == "F32"
    assert stored["model.layers.0.mlp.up_proj.weight"][0] == "F16"
    assert json.loads((tmp_path / "out/config.json").read_text())["dtype"] == "float32"
    values = load_file(tmp_path / "out/model.safetensors")["model.layers.1.mlp.up_proj.weight"]
    expected = [
        v
        for at in range(0, rows.shape[1], 34)
        for v in FORMULAS["Q8_0"](rows[5, at : at + 34].tobytes())
    ]
    np.testing.assert_array_equal(values[5], np.array(expected, np.float32))
    assert np.abs(values).max() > LARGEST_F16


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_K"])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_values_that_are_not_finite_are_refused(kind, value, tmp_path):
    random = np.random.default_rng(0)
    rows = np.array(quantised(np.ones((2, 256), np.float32), Kind[kind], random)).view(np.uint8)
    if kind == "F32":
        rows[1, 4:8] = np.array([value], "<f4").view(np.uint8)
    elif kind == "BF16":
        rows[1, 4:6] = (np.array([value], "<f4").view("<u4") >> 16).astype("<u2").view(np.uint8)
    else:
        rows[1, 0:2] = np.array([value], "<f2").view(np.uint8)
    with pytest.raises(ModelError, match=r"tensor a\.weight: holds .*no finite number"):
        stored_values(tmp_path, info_of(kind, rows), rows, Dtype.F16)
