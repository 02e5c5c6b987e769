"""Tests that a run with files of a model beyond their limits fails before its model is loaded."""

import json
import shutil

import pytest

from engine.events.log import EventLog, read_all
from engine.events.vocabulary import RunState, RunStateChanged
from engine.policy.models.load import ModelError, check_agent, check_model_directory
from engine.training.run import train
from tests.helpers.policies import tiny_config, tiny_policy

MULTIPLYING = "{{ messages[0].content * 3160000000 }}"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return tiny_policy(tmp_path_factory.mktemp("models") / "sound")


@pytest.fixture
def model(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "model")


def test_a_run_with_a_template_that_multiplies_fails_with_its_limit(model, tmp_path):
    (model / "chat_template.jinja").write_text(MULTIPLYING)
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / "config.json").write_text(tiny_config(model).model_dump_json())
    log = EventLog(run_dir)
    log.append(RunStateChanged(RunState.STARTING))
    log.close()
    with pytest.raises(ModelError):
        train(run_dir)
    last = list(read_all(run_dir))[-1].payload
    assert last["state"] == "failed"
    assert f"ModelError: {model / 'chat_template.jinja'}: `*` makes" in last["reason"]


def test_every_place_of_a_template_is_checked(model, tmp_path):
    (model / "chat_template.jinja").rename(tmp_path / "sound.jinja")
    for given in (MULTIPLYING, [{"name": "default", "template": MULTIPLYING}]):
        config = json.loads((model / "tokenizer_config.json").read_text())
        text = json.dumps(config | {"chat_template": given})
        (model / "tokenizer_config.json").write_text(text)
        with pytest.raises(ModelError, match=r"tokenizer_config\.json: chat_template: `\*` makes"):
            check_model_directory(str(model))


def test_an_agents_own_template_is_checked(model, tmp_path):
    file = tmp_path / "own.jinja"
    file.write_text(MULTIPLYING)
    (agent,) = tiny_config(model).agents
    with pytest.raises(ModelError, match=r"agents\.agent-0\.chat_template = .*own\.jinja: `\*` ma"):
        check_agent(agent.model_copy(update={"chat_template": str(file)}))


def test_a_tokenizer_that_multiplies_is_refused(model):
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    letters = [("a", "b" * 2000), ("b", "c" * 2000), ("c", "d" * 2000)]
    tokenizer["normalizer"] = {
        "type": "Sequence",
        "normalizers": [
            {"type": "Replace", "pattern": {"String": one}, "content": many}
            for one, many in letters
        ],
    }
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ModelError, match=r"tokenizer\.json: normalizer: content of Replace must"):
        check_model_directory(str(model))
