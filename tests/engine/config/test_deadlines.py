"""Tests of the deadlines that an operator sets: values, the factor, refusals, errors."""

import ast
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.config import deadlines
from engine.config.deadlines import DEADLINES, ENGINE_START, RUN_LEASE, WEB_CLOSE, Deadline
from engine.config.errors import ConfigError
from engine.config.generator_support import start_deadline
from engine.run.own_ray import ray_settings

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    """An environment without any of the variables, whatever the suite's own patience is."""
    for name in deadlines.VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_an_unset_deadline_is_its_default(monkeypatch):
    assert {name: one.seconds for name, one in DEADLINES.items()} == {
        name: one.default for name, one in DEADLINES.items()
    }
    assert (ENGINE_START.seconds, RUN_LEASE.seconds, deadlines.patience()) == (10.0, 15.0, 1.0)
    monkeypatch.setenv("GROVE_PATIENCE", "")
    monkeypatch.setenv("GROVE_RUN_LEASE_SECONDS", "")
    assert RUN_LEASE.seconds == 15.0 and deadlines.given() == {}


def test_patience_is_a_factor_of_all_and_a_value_wins_over_it(monkeypatch):
    monkeypatch.setenv("GROVE_PATIENCE", "2.5")
    assert all(one.seconds == 2.5 * one.default for one in DEADLINES.values())
    assert WEB_CLOSE.whole_seconds == 8  # of 7.5
    monkeypatch.setenv("GROVE_RUN_LEASE_SECONDS", "0.25")
    assert (RUN_LEASE.seconds, ENGINE_START.seconds) == (0.25, 25.0)
    assert deadlines.given() == {"GROVE_PATIENCE": "2.5", "GROVE_RUN_LEASE_SECONDS": "0.25"}


BAD = [
    *(("GROVE_PATIENCE", text) for text in ("0", "0.99", "101", "-2", "x", "nan", "2,5", "1e1")),
    *(("GROVE_CALL_SECONDS", text) for text in ("0", "0.0", "-1", "inf", "604801", "1 s", "٣")),
]


@pytest.mark.parametrize("name, text", BAD)
def test_an_unusable_value_is_refused_by_name_with_the_remedy(monkeypatch, name, text):
    monkeypatch.setenv(name, text)
    remedy = "give a number from 1 to 100" if "PATIENCE" in name else "give seconds, more than 0"
    with pytest.raises(ConfigError, match=f"^{name} = '{text}': {remedy}.*, or unset it$"):
        deadlines.check()
    with pytest.raises(ConfigError, match=f"^{name} = '{text}'"):
        _ = deadlines.CALL.seconds


def test_all_unusable_values_are_refused_together(monkeypatch):
    monkeypatch.setenv("GROVE_PATIENCE", "1000")
    monkeypatch.setenv("GROVE_CALL_SECONDS", "soon")
    with pytest.raises(ConfigError) as refusal:
        deadlines.check()
    assert [one["path"] for one in refusal.value.problems] == [
        "GROVE_CALL_SECONDS", "GROVE_PATIENCE",
    ]  # fmt: skip


def test_an_engine_refuses_an_unusable_value_before_anything_starts(monkeypatch, capsys):
    monkeypatch.setenv("GROVE_KILL_SECONDS", "never")
    assert main(["config"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "GROVE_KILL_SECONDS = 'never': give seconds" in printed.err


def test_every_error_names_its_own_variable_and_the_factor():
    assert ENGINE_START.passed == (
        "waited 10 s for the engine to start; on a busy machine raise GROVE_ENGINE_START_SECONDS "
        "or GROVE_PATIENCE"
    )
    assert ENGINE_START.advice.startswith("On a busy machine raise GROVE_ENGINE_START_SECONDS or")
    assert all(name in one.passed and name in one.advice for name, one in DEADLINES.items())


def test_every_deadline_is_used_by_the_product():
    names = {
        name for name, one in vars(deadlines).items() if isinstance(one, Deadline)
    }  # fmt: skip
    assert len(names) == len(DEADLINES)
    used = set()
    for room in ("engine", "webapp", "workers"):
        for file in (ROOT / room).rglob("*.py"):
            if file.name != "deadlines.py" and "config.deadlines" in (text := file.read_text()):
                used |= {one.id for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Name)}
    assert not names - used


def test_ray_is_as_patient(monkeypatch):
    assert ray_settings() == {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
        "RAY_prestart_worker_first_driver": "0",
        "RAY_worker_register_timeout_seconds": "240",
    }
    monkeypatch.setenv("GROVE_PATIENCE", "1.5")
    settings = ray_settings()
    assert settings["RAY_worker_register_timeout_seconds"] == "360"
    assert settings["RAY_raylet_start_wait_time_s"] == "45"
    assert settings["RAY_agent_register_timeout_ms"] == "45000"


def test_agents_with_vllm_have_longer_to_start(monkeypatch):
    from engine.config.agents import AgentConfig

    plain = AgentConfig(name="one", model="starter:oak")
    with_vllm = AgentConfig(name="two", model="starter:oak", generator={"name": "vllm"})
    assert start_deadline([plain]).variable == "GROVE_ACTORS_START_SECONDS"
    assert start_deadline([plain, with_vllm]).variable == "GROVE_VLLM_START_SECONDS"
