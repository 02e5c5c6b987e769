"""Tests that the operator's caps bound every program, whatever limits a problem sets."""

import json
from dataclasses import replace

import pytest

from engine.__main__ import main
from engine.config.errors import ConfigError
from engine.config.sandbox import SandboxConfig
from engine.events.vocabulary import Verdict
from engine.problems.jsonl import save_problems
from engine.problems.problem import CallTest, Limits, Problem
from engine.sandbox.host.job import bounds
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.verify import verify
from engine.sandbox.limits import DEFAULTS, SandboxCaps

pytestmark = pytest.mark.service

SETTINGS = {"cpu_seconds": 5.0, "wall_seconds": 600.0, "memory_mb": 96, "output_bytes": 4096}
HOUR, TEBIBYTE = Limits.MAX_SECONDS, Limits.MAX_MEMORY_MB
TAKES = "def solve(x):\n    held = bytearray(x << 20)\n    return len(held) >> 20\n"
BURNS = (
    "import time\n\ndef solve(x):\n    end = time.process_time() + x\n"
    "    while time.process_time() < end:\n        pass\n    return x\n"
)
PRINTS = "def solve(x):\n    return 'a' * x\n"


def problem(given, expected, **limits):
    test = (CallTest((given,), expected),)
    return Problem("p", "Do it.", "solve", test, (), limits=Limits(**limits))


@pytest.mark.parametrize(
    ("program", "of_problem", "caps", "fails_by"),
    [
        (TAKES, problem(300, 300, memory_mb=600), SandboxCaps(memory_mb=96), Verdict.MEMORY_LIMIT),
        (BURNS, problem(1.2, 1.2, seconds=HOUR), SandboxCaps(seconds=1), Verdict.TIME_LIMIT),
        (PRINTS, problem(3 << 20, "a" * (3 << 20)), SandboxCaps(output_mb=1), Verdict.OUTPUT_LIMIT),
    ],
    ids=["memory", "seconds", "output"],
)
def test_a_problem_gets_no_more_than_the_operator_allows(program, of_problem, caps, fails_by):
    for these, verdict in ((caps, fails_by), (SandboxCaps(), Verdict.PASSED)):
        with Sandbox(SandboxConfig(workers=1, **SETTINGS), these) as sandbox:
            (result,) = verify(sandbox, [(of_problem, program)])
        assert result.verdict is verdict, result


def test_a_cap_lowers_the_settings_of_a_run_too():
    caps = SandboxCaps(seconds=1, memory_mb=96, output_mb=1)
    wide = SandboxConfig(
        workers=1, cpu_seconds=3600, wall_seconds=3600, memory_mb=1 << 20, output_bytes=1 << 30
    )
    with Sandbox(wide, caps) as sandbox:
        config = sandbox.config
        (result,) = verify(sandbox, [(problem(300, 300), TAKES)])
    assert result.verdict is Verdict.MEMORY_LIMIT
    found = config.cpu_seconds, config.wall_seconds, config.memory_mb, config.output_bytes
    assert found == (1, 2, 96, 1 << 20)
    assert len(caps.cuts(wide)) == 4 and "GROVE_SANDBOX_SECONDS" in caps.cuts(wide)[1]
    narrow = SandboxConfig(**SETTINGS | {"cpu_seconds": 0.4, "wall_seconds": 2})
    assert caps.of_settings(narrow) is SandboxCaps().of_settings(narrow) is narrow
    assert caps.cuts(narrow) == []


@pytest.mark.parametrize("caps", [SandboxCaps(), SandboxCaps(seconds=7, memory_mb=300)])
def test_no_limit_of_a_problem_reaches_an_hour_or_a_tebibyte(caps):
    most_seconds, most_memory = caps.seconds or DEFAULTS["seconds"], caps.memory_mb or 2048
    config = SandboxConfig(**SETTINGS | {"cpu_seconds": 0.01, "wall_seconds": 3.0})
    result = bounds(config, Limits(HOUR, TEBIBYTE), 1 << 40, caps)
    assert (result.cpu_seconds, result.memory_bytes) == (most_seconds, most_memory << 20)
    assert result.wall_seconds == 2 * most_seconds and result.output_bytes == 64 << 20
    config, same = SandboxConfig(), Limits(5.0, 128)  # limits below the caps are unchanged
    assert bounds(config, same, 9000, caps) == bounds(config, same, 9000)
    assert bounds(config, same).cpu_seconds == 5 and bounds(config).wall_seconds == 4


def test_a_run_of_ones_own_may_have_settings_above_the_defaults():
    config = SandboxConfig(cpu_seconds=500, wall_seconds=1000, memory_mb=8192)
    result = bounds(config, Limits(400.0, 4096))
    assert (result.cpu_seconds, result.wall_seconds, result.memory_bytes) == (400, 800, 4096 << 20)


def test_a_check_has_the_caps_of_its_environment_and_reports_what_it_lowers(
    tmp_path, capsys, monkeypatch
):
    requested = problem(300, 300, seconds=40, memory_mb=600)
    file = tmp_path / "a.jsonl"
    tests = requested.public_tests
    save_problems(file, [replace(requested, private_tests=tests, reference=TAKES)])
    assert main(["problems", "check", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cuts"] == []
    monkeypatch.setenv("GROVE_SANDBOX_MEMORY_MB", "96")
    assert main(["problems", "check", str(file), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert [one["verdict"] for one in data["failed"]] == ["memory_limit"]
    settings, problems = data["cuts"]
    assert "sandbox.memory_mb = 256" in settings and "96" in settings
    assert problems.startswith("1 problems") and "GROVE_SANDBOX_MEMORY_MB" in problems


@pytest.mark.parametrize("text", ["0", "-1", "lots", "1e3", "²", str(1 << 40), "0" * 8 + "50000"])
def test_a_cap_that_is_none_names_the_variable(text):
    with pytest.raises(ConfigError, match=r"GROVE_SANDBOX_SECONDS = .*give 1 to 3600"):
        SandboxCaps.from_environment({"GROVE_SANDBOX_SECONDS": text})
    given = SandboxCaps(seconds=9, output_mb=2)
    assert SandboxCaps.from_environment(given.environment()) == given
    assert SandboxCaps.from_environment({"GROVE_SANDBOX_SECONDS": ""}) == SandboxCaps()
