"""A benchmark is run as people run it, with a small load; its figures are not judged here."""

import json
import subprocess
import sys


def run(*arguments):
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_sandbox_benchmark_ends_with_one_json_line():
    done = run("sandbox", "--json", "--programs", "3", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert set(result) == {"name", "ratios", "figures", "versions"}
    assert result["name"] == "sandbox"
    assert {"vs_fresh_python", "vs_manager"} <= set(result["ratios"])
    assert ("vs_bwrap_python" in result["ratios"]) != ("left_out" in result["figures"])
    assert result["figures"]["tests_per_second"] > 0
    assert result["versions"]["tier"] in ("full", "restricted")


def test_a_benchmark_that_does_not_exist_is_named():
    done = run("nothing")
    assert done.returncode == 2
    assert "'nothing'" in done.stderr and "sandbox" in done.stderr
