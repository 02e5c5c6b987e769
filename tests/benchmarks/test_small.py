"""Tests that run each benchmark with a small load; its results are not judged here."""

import importlib
import json
import subprocess
import sys

import pytest

from benchmarks import MEASUREMENTS, at_most
from benchmarks import __main__ as command
from tests.helpers.extras import needed
from tests.helpers.waiting import patience

pytestmark = pytest.mark.service


def run(*arguments):
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120 * patience())


def load(name):
    return importlib.import_module(f"benchmarks.{MEASUREMENTS[name]}")


@pytest.mark.large
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


def test_the_search_benchmark_opens_the_nodes_that_its_peer_opens():
    needed("treequest", "python3 workers/local/install.py dev")
    done = run("search", "--json", "--largest", "64", "--nodes", "64", "--peer-trees", "1")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert set(result["ratios"]) == {"vs_treequest_step_64", "vs_treequest_inplace_64"}
    assert result["figures"]["beta_node_first_64_us_per_node"] > 0


def test_the_expansion_benchmark_grows_whole_trees():
    done = run("expansion", "--json", "--trees", "1", "--median", "0.002")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert set(result["ratios"]) == {"k4_speedup", "trees16_over_1"}
    assert 1 <= result["figures"]["k8_depth"] <= 32
    assert 1 <= result["figures"]["k1_root_children"] <= 32


def test_every_measurement_is_listed_with_what_it_says(capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["--help"])
    assert ended.value.code == 0
    listed = " ".join(capsys.readouterr().out.split())
    for name in MEASUREMENTS:
        assert f"{name} {load(name).SUMMARY}" in listed


def test_goals_are_of_ratios_and_say_which_side_is_good():
    goals = {name: goal for name in MEASUREMENTS for name, goal in load(name).GOALS.items()}
    assert str(goals["vs_fresh_python"]) == "at least 2.5"
    assert goals["vs_fresh_python"].met(2.5) and not goals["vs_fresh_python"].met(2.4)
    assert at_most(1.5).met(1.5) and not at_most(1.5).met(1.6)


def test_a_ratio_settles_once_its_rounds_agree_despite_an_outlier():
    from benchmarks.prefix_training import PRECISION, _error

    assert _error([1.0, 1.01, 0.99, 1.0, 5.0]) < PRECISION < _error([0.8, 1.2, 0.9, 1.1, 1.0])
    assert _error([1.0, 1.2] * 50) < _error([1.0, 1.2] * 5)


@pytest.mark.large
def test_logging_from_any_program_reads_back_what_it_timed():
    done = run("tracking", "--json", "--steps", "40", "--rounds", "1", "--without-peers")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])["figures"]
    assert 0 < figures["grove_call_ms_per_step"] <= figures["grove_stored_ms_per_step"]


@pytest.mark.large
@pytest.mark.slow
def test_siblings_are_guarded_and_measured_against_every_way():
    done = run("siblings", "--json", "--prompt", "40", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert set(result["ratios"]) == {"vs_one_by_one", "vs_batch", "vs_transformers"}
    assert result["figures"]["same_tokens"] == 8 * 32
    assert result["figures"]["tokens_per_second"] > 0


def test_without_its_peer_the_step_is_left_out_with_the_remedy():
    absent = "import runpy, sys; sys.modules['trl'] = None; sys.argv[1:] = ['step', '--json'];"
    command = [
        sys.executable,
        "-c",
        f"{absent} runpy.run_module('benchmarks', run_name='__main__')",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120 * patience())
    assert done.returncode == 3
    assert "pip install -c constraints.txt '.[bench]'" in done.stderr


def test_a_benchmark_that_does_not_exist_is_named(capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["nothing"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "'nothing'" in said and "sandbox" in said


def test_overlap_has_no_ratio_where_other_work_was_done():
    from benchmarks.overlap import RunResult, _unequal

    def ran(learned=800, reward=0.5):
        return RunResult(10.0, 12, learned, [(reward, 256)] * 4, {}, 0.0)

    figures = {}
    assert _unequal([ran()], [ran(reward=0.55)], figures) == ""
    assert figures["reward_difference_allowed"] > 0.05
    assert "rewards differ" in _unequal([ran()], [ran(reward=0.9)], figures)
    assert "numbers of nodes" in _unequal([ran()], [ran(learned=799)], figures)


def test_a_deeper_starter_answers_as_the_starter_does(tmp_path):
    import torch

    from benchmarks.deeper import deeper
    from engine.policy.models.load import load_policy

    ids_BL = torch.randint(4, 400, (2, 40), generator=torch.Generator().manual_seed(1))
    starter = load_policy("starter:fern", "cpu", "float32").model
    own = load_policy(str(deeper("fern", 5, tmp_path / "model")), "cpu", "float32").model
    assert own.num_parameters() > starter.num_parameters()
    torch.testing.assert_close(own(ids_BL).logits, starter(ids_BL).logits)
    own(ids_BL).logits.sum().backward()
    assert all(layer.mlp.down_proj.weight.grad.any() for layer in own.model.layers)  # they learn
    with pytest.raises(ValueError, match=f"has {len(starter.model.layers)}"):
        deeper("fern", 1, tmp_path / "shallow")


@pytest.mark.large
@pytest.mark.service
def test_the_rest_benchmark_queries_a_real_site():
    load = ("--runs", "60", "--metrics", "40", "--listed", "10", "--steps", "3", "--points", "2500")
    done = run("api", "--json", "--without-peers", *load)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert 1 <= result["ratios"]["max_queries"] <= 20, result["figures"]["queries"]
    assert result["ratios"]["list_p95_ms"] > 0 and result["figures"]["grove_read_seconds"] > 0
