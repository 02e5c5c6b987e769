"""Tests of the weight files of an import: groups of rows, shards, and how they are read."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from gguf import GGUFReader
from safetensors import safe_open

from engine.policy.models.gguf.architectures import plan_of
from engine.policy.models.gguf.convert import convert
from engine.policy.models.gguf.file import CHUNK_NUMBERS, read_file
from engine.policy.models.gguf.weights import SHARD_BYTES, write_weights
from engine.policy.models.load import load_policy
from tests.engine.policy.gguf.tiny import content_of, tiny_model
from tests.engine.policy.gguf.vocabularies import byte_level
from webapp.registry.model_files.layout import check_model, files_of


@pytest.fixture
def path(tmp_path):
    vocabulary = byte_level()
    model = tiny_model("llama", len(vocabulary["tokenizer.ggml.tokens"]))
    content = content_of(model, "llama", "Q4_1", vocabulary)
    return content.write(tmp_path / "tiny.gguf")


def write(path, folder, chunk_numbers=CHUNK_NUMBERS, shard_bytes=SHARD_BYTES):
    folder.mkdir(exist_ok=True)
    read = []
    with path.open("rb") as stream:
        file = read_file(path, stream, chunk_numbers)
        write_weights(file, plan_of(file).sources, folder, read.append, shard_bytes)
        assert sum(read) == sum(info.size for info in file.tensors.values())
    return folder


@pytest.mark.parametrize("rows", [1, 64, 70, 129])  # a head has 64
def test_groups_of_rows_do_not_change_a_byte(path, rows, tmp_path):
    whole = write(path, tmp_path / "whole") / "model.safetensors"
    parts = write(path, tmp_path / "parts", chunk_numbers=256 * rows) / "model.safetensors"
    assert whole.read_bytes() == parts.read_bytes()


def test_a_late_value_above_f16_makes_the_whole_tensor_f32(path, tmp_path):
    (tensor,) = (t for t in GGUFReader(path).tensors if t.name == "blk.1.ffn_up.weight")
    content = bytearray(path.read_bytes())
    at = tensor.data_offset + 200 * 256 // 32 * 20  # a block of row 200 in Q4_1
    content[at : at + 2] = np.array([65000.0], "<f2").tobytes()
    path.write_bytes(content)
    whole = write(path, tmp_path / "whole") / "model.safetensors"
    parts = write(path, tmp_path / "parts", chunk_numbers=256 * 64) / "model.safetensors"
    assert whole.read_bytes() == parts.read_bytes()
    with safe_open(whole, framework="np") as weights:
        assert weights.get_tensor("model.layers.1.mlp.up_proj.weight").dtype == np.float32


def test_shards_hold_the_same_model(path, tmp_path):
    convert(path, tmp_path / "one")
    convert(path, tmp_path / "many")
    (tmp_path / "many/model.safetensors").unlink()
    write(path, tmp_path / "many", shard_bytes=400_000)
    shards = sorted((tmp_path / "many").glob("model-*.safetensors"))
    assert len(shards) > 3
    assert all(shard.stat().st_size < 410_000 for shard in shards)
    index = json.loads((tmp_path / "many/model.safetensors.index.json").read_text())
    assert set(index["weight_map"].values()) == {shard.name for shard in shards}
    assert check_model(files_of(tmp_path / "many")).weights == tuple(s.name for s in shards)
    one, many = (load_policy(str(tmp_path / name)).model.state_dict() for name in ("one", "many"))
    assert one.keys() == many.keys()
    assert all(torch.equal(one[name], many[name]) for name in one)
    sizes = sum(safe_open_bytes(shard) for shard in shards)
    assert index["metadata"]["total_size"] == sizes


def safe_open_bytes(shard):
    with safe_open(shard, framework="pt") as weights:
        return sum(weights.get_tensor(name).nbytes for name in weights.keys())  # noqa: SIM118


def test_every_number_lies_at_a_multiple_of_its_size(path, tmp_path):
    write(path, tmp_path / "out")
    data = (tmp_path / "out/model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            assert entry["data_offsets"][0] % (4 if entry["dtype"] == "F32" else 2) == 0, name
