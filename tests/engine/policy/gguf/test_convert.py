"""Tests of the directory that an import writes, whole or not at all, and of its command."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys

import pytest
from gguf import GGUFReader

from engine.__main__ import main
from engine.policy.models.gguf.convert import convert
from engine.policy.models.load import ModelError, check_model_directory, load_policy
from tests.engine.policy.gguf.tiny import ARCHITECTURES, content_of, tiny_model
from tests.engine.policy.gguf.vocabularies import byte_level, pieces
from tests.helpers.waiting import patience
from webapp.registry.model_files.layout import check_model, files_of


def tiny_file(path, architecture="llama", **values):
    vocabulary = pieces() if architecture == "gemma3" else byte_level()
    model = tiny_model(architecture, len(vocabulary["tokenizer.ggml.tokens"]))
    content = content_of(model, architecture, "Q4_1", vocabulary)
    content.values |= values
    for key in [key for key, value in content.values.items() if value is None]:
        del content.values[key]
    return content.write(path), model


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_registry_accepts_the_directory(architecture, tmp_path):
    path, model = tiny_file(tmp_path / "tiny.gguf", architecture)
    convert(path, tmp_path / "imported")
    layout = check_model(files_of(tmp_path / "imported"))
    assert layout.architecture == type(model).__name__
    own = sum(parameter.numel() for parameter in model.parameters())
    assert layout.parameters == own
    check_model_directory(str(tmp_path / "imported"))


def test_the_origin_is_kept(tmp_path):
    stated = {"general.name": "Tiny", "general.license": "apache-2.0"}
    path, _ = tiny_file(tmp_path / "tiny.gguf", **stated)
    convert(path, tmp_path / "imported")
    lineage = json.loads((tmp_path / "imported/lineage.json").read_text())
    assert lineage["file"] == "tiny.gguf"
    assert lineage["bytes"] == path.stat().st_size
    assert lineage["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert lineage["tensors"] == {"F32": 5, "Q4_1": 16}
    assert lineage["stated"] == {"name": "Tiny", "licence": "apache-2.0"}
    assert lineage["chat_template"] == "file"


@pytest.mark.parametrize(
    ("tokens", "origin", "text"),
    [
        (None, "chatml", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"),
        ("<|turn|>", "plain", "Hi\n"),
    ],
)
def test_a_file_without_a_chat_template_gets_one(tokens, origin, text, tmp_path):
    values = {"tokenizer.chat_template": None}
    if tokens is not None:
        known = byte_level()["tokenizer.ggml.tokens"]
        values["tokenizer.ggml.tokens"] = [known[0], tokens, *known[2:]]
    path, _ = tiny_file(tmp_path / "tiny.gguf", **values)
    convert(path, tmp_path / "imported")
    lineage = json.loads((tmp_path / "imported/lineage.json").read_text())
    assert lineage["chat_template"] == origin
    tokenizer = load_policy(str(tmp_path / "imported")).tokenizer
    messages = [{"role": "user", "content": "Hi"}]
    shown = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert shown == text


def test_progress_rises_to_one(tmp_path):
    path, _ = tiny_file(tmp_path / "tiny.gguf")
    shares = []
    convert(path, tmp_path / "imported", shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert 0 < shares[0] < 0.2
    assert len(shares) > 10


def test_other_users_may_read_the_directory_as_far_as_the_umask_says(tmp_path):
    plain = tmp_path / "plain"
    plain.mkdir()
    convert(tiny_file(tmp_path / "tiny.gguf")[0], tmp_path / "model")
    assert (tmp_path / "model").stat().st_mode == plain.stat().st_mode


def test_an_existing_directory_is_left_alone(tmp_path):
    path, _ = tiny_file(tmp_path / "tiny.gguf")
    (tmp_path / "imported").mkdir()
    with pytest.raises(ModelError, match="imported: exists; name a new directory"):
        convert(path, tmp_path / "imported")
    assert not list((tmp_path / "imported").iterdir())


@pytest.mark.parametrize("kind", ["missing", "directory", "pipe", "text", "pointer"])
def test_a_file_that_is_no_gguf_is_refused(kind, tmp_path):
    path = tmp_path / "tiny.gguf"
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "text":
        path.write_text("very long")
    elif kind == "pointer":
        path.write_text("version https://git-lfs.github.com/spec/v1\n")
    start = "this is a pointer of git-lfs.*git lfs pull" if kind == "pointer" else "b'very'"
    with pytest.raises(ModelError, match=rf"tiny\.gguf: (is no file|its first bytes: {start})"):
        convert(path, tmp_path / "imported")
    assert not (tmp_path / "imported").exists()


def test_a_fault_in_the_last_tensor_leaves_nothing(tmp_path):
    path, _ = tiny_file(tmp_path / "tiny.gguf")
    (last,) = (t for t in GGUFReader(path).tensors if t.name == "blk.1.ffn_down.weight")
    content = bytearray(path.read_bytes())
    end = last.data_offset + last.n_bytes
    content[end - 20 : end] = b"\xff" * 20  # the scale of its last block is no number
    path.write_bytes(content)
    with pytest.raises(
        ModelError, match=r"tensor blk\.1\.ffn_down\.weight: holds nan, which is no finite"
    ):
        convert(path, tmp_path / "imported")
    assert [one.name for one in tmp_path.iterdir()] == ["tiny.gguf"]


def test_an_unwritable_location_is_named(tmp_path):
    path, _ = tiny_file(tmp_path / "tiny.gguf")
    with pytest.raises(ModelError, match=r"tiny\.gguf: (File exists|Not a directory)"):
        convert(path, path / "imported")


def test_the_command_reports_progress_as_json_lines(tmp_path, capfd):
    path, _ = tiny_file(tmp_path / "tiny.gguf")
    words = ["models", "import", str(path), str(tmp_path / "imported")]
    assert main([*words, "--json-progress"]) == 0
    shares = [json.loads(line)["progress"] for line in capfd.readouterr().out.splitlines()]
    assert shares == sorted(set(shares))
    assert shares[-1] == 1
    assert main(words) == 2
    assert capfd.readouterr().err.startswith("ModelError: ")


@pytest.mark.service
def test_a_stopped_command_leaves_nothing(tmp_path):
    path, _ = tiny_file(tmp_path / "tiny.gguf")
    command = [sys.executable, "-m", "engine", "models", "import", path]
    for attempt in range(20):
        target = tmp_path / f"imported-{attempt}"
        with subprocess.Popen(
            [*command, target, "--json-progress"], stdout=subprocess.PIPE
        ) as process:
            assert json.loads(process.stdout.readline())["progress"] < 1
            process.send_signal(signal.SIGTERM)
            status = process.wait(timeout=60 * patience())
        assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
        if status == 128 + signal.SIGTERM:
            assert not target.exists()
            return
        assert status == 0  # it was faster than the signal
    pytest.fail("no attempt was stopped before its end")


@pytest.mark.service
def test_an_import_loads_no_torch(tmp_path):
    path, _ = tiny_file(tmp_path / "tiny.gguf")
    program = (
        "import sys; from pathlib import Path\n"
        "from engine.policy.models.gguf.convert import convert\n"
        f"convert(Path({str(path)!r}), Path({str(tmp_path / 'imported')!r}));"
        "print(sorted({'torch', 'transformers', 'ray'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120 * patience()
    )
    assert result.stdout == "[]\n", result.stderr
