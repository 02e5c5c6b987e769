"""Tests that a folder is looked at before its first byte is sent."""

import os

import pytest

from tests.helpers.builders import a_model_folder
from webapp.client.client import Grove
from webapp.client.models import files_to_push, push_gguf, push_model

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"


@pytest.fixture
def folder(tmp_path):
    return a_model_folder(tmp_path / "elm")


def test_what_is_no_part_of_a_model_is_left_out_with_a_reason(folder):
    (folder / ".gitattributes").write_text("*.safetensors filter=lfs\n")
    (folder / "SHA256SUMS").write_text("0  model.safetensors\n")
    (folder / "modeling.py").write_text("1 / 0")
    (folder / "original").mkdir()
    os.mkfifo(folder / "README.md")
    files, left_out = files_to_push(folder)
    assert [file.name for file in files] == [
        "chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json",
        "tokenizer_config.json",
    ]  # fmt: skip
    assert left_out.keys() == {".gitattributes", "SHA256SUMS", "modeling.py", "original",
                               "README.md"}  # fmt: skip
    assert left_out["original"] == "is no file" and "never run" in left_out["modeling.py"]


@pytest.mark.parametrize("length", [128, 0x8B1F])
def test_a_header_of_any_length_is_sent(folder, length):
    from safetensors.numpy import load_file, save

    content = save(load_file(folder / "model.safetensors"))
    size = int.from_bytes(content[:8], "little")
    padded = size + (length - size) % (256 if length < 256 else 1 << 16)
    header = content[8 : 8 + size].ljust(padded)
    content = padded.to_bytes(8, "little") + header + content[8 + size :]
    (folder / "model.safetensors").write_bytes(content)
    assert len(files_to_push(folder)[0]) == 5


DAMAGES = {
    "a pickle": ("model.safetensors", b"\x80\x04.", "model.safetensors: is no safetensors file"),
    "a pointer of weights": ("model.safetensors", POINTER, "safetensors: is a pointer of git-lfs"),
    "a pointer of the tokenizer": ("tokenizer.json", POINTER, "tokenizer.json: is a pointer of"),
    "no config": ("config.json", None, "config.json: is missing"),
    "no weights": ("model.safetensors", None, "model.safetensors: is missing"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_what_the_server_would_refuse_is_refused_before_anything_is_sent(folder, what):
    name, content, message = DAMAGES[what]
    (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
    # Nothing listens there: a request would be another error.
    with Grove("http://127.0.0.1:9", "token") as grove, pytest.raises(ValueError, match=message):
        push_model(grove, 1, "elm", folder)


def test_a_gguf_file_in_a_folder_and_a_pointer_of_one_are_refused(tmp_path):
    (tmp_path / "oak.gguf").write_bytes(POINTER)
    (tmp_path / "README.md").write_text("# Oak\n")
    with pytest.raises(ValueError, match=r"oak\.gguf: give the GGUF file itself"):
        files_to_push(tmp_path)
    with Grove("http://127.0.0.1:9", "token") as grove, pytest.raises(ValueError, match="git lfs"):
        push_gguf(grove, 1, "oak", tmp_path / "oak.gguf")
