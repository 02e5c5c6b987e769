"""Tests that start every benchmark with models or a browser at a small size, with its guard.

Results are not judged; what a guard compares must agree, otherwise there are no results.
"""

import json
import os
import subprocess
import sys

import pytest

from benchmarks import MEASUREMENTS
from engine.resources.small_machine import multiplies_bfloat16
from tests.helpers.extras import needs_vllm
from tests.helpers.waiting import patience

pytestmark = pytest.mark.service
STARTED_ELSEWHERE = {"sandbox", "search", "expansion", "siblings", "api", "tracking"}
"""Started in `test_small.py`."""


def measured(name, *arguments):
    command = [sys.executable, "-m", "benchmarks", name, "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240 * patience())
    if done.returncode == 3 and not os.environ.get("CI"):
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.large
def test_prefix_training_compares_gradients_before_it_times_them():
    shapes = ("--shapes", "p16_r16_g1_n1", "p16_r16_g16_n1")
    result = measured("prefix_training", *shapes, "--rounds", "1", "--seconds", "0")
    figures = result["figures"]
    assert figures["p16_r16_g16_n1_layout"] == "prefix"
    assert figures["p16_r16_g1_n1_gradients_apart"] <= 1e-6
    assert 0 < figures["p16_r16_g16_n1_gradients_apart"] <= 1e-6  # of two different layouts
    # Where both use the same layout, only the choice is timed.
    assert "p16_r16_g1_n1_choosing_ms" in figures and "p16_r16_g16_n1_choosing_ms" not in figures
    assert figures["p16_r16_g1_n1_paired"] > 0 and figures["worst_same"] > 0
    assert set(result["ratios"]) == {"worst"} and result["ratios"]["worst"] > 0


@pytest.mark.large
def test_async_learns_from_as_many_nodes_both_ways():
    small = ("--steps", "3", "--seeds", "1", "--trees", "2", "--layers", "2")
    figures = measured("async", *small)["figures"]
    assert figures["alternating_nodes_learned"] == figures["overlapped_nodes_learned"] == 3 * 2 * 8
    assert (
        abs(figures["alternating_reward"] - figures["overlapped_reward"])
        <= (figures["reward_difference_allowed"])
    )
    assert figures["overlapped_steps_per_minute"] > 0


@pytest.mark.large
def test_a_step_is_compared_with_trls_after_loss_gradients_and_prompts():
    small = ("--statements", "bare", "--steps", "4", "--rounds", "1")
    result = measured("step", *small)
    figures = result["figures"]
    assert set(result["ratios"]) == {"vs_trl_bare", "vs_trl_bare_without_verify"}
    assert figures["bare_steps"] == 4 and figures["bare_trl_rollouts_per_second"] > 0
    assert 0 <= figures["loss_gap"] < 1e-5 and 0 < figures["gradient_gap"] < 1e-5
    assert figures["bare_tokens_per_rollout"] == pytest.approx(
        figures["bare_trl_tokens_per_rollout"], rel=0.1
    )
    assert result["versions"]["trl"]


def tiny_model(folder):
    """Writes a Llama with random weights and the starters' tokenizer."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from engine.policy.starters import starter_directory

    tokenizer = AutoTokenizer.from_pretrained(starter_directory("oak"))
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, initializer_range=0.1,
        bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=0,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.large
def test_a_pretrained_model_is_compared_with_transformers_and_trl(tmp_path):
    small = ("--tokens", "16", "--rounds", "1", "--threads", "1", "--steps", "1")
    result = measured("pretrained", "--model", tiny_model(tmp_path / "tiny"), *small)
    ways = ("vs_transformers", "same_dtype", "vs_bfloat16")
    also = {"vs_trl_float32", "vs_trl_bfloat16"} if multiplies_bfloat16() else set()
    assert set(result["ratios"]) == also | {
        *(f"{way}_{rows}" for way in ways for rows in (8, 32)), "vs_trl", "vs_trl_update"
    }  # fmt: skip
    figures = result["figures"]
    assert figures["float32_mean_gap_nats_8"] < 1e-5 < figures["quick_mean_gap_nats_8"] < 0.1
    assert figures["tokens_per_answer"] == pytest.approx(figures["trl_tokens_per_answer"], rel=0.1)


def test_a_pretrained_model_that_is_not_installed_is_left_out(tmp_path):
    command = [sys.executable, "-m", "benchmarks", "pretrained", "--json"]
    environment = {**os.environ, "GROVE_MODELS_DIR": str(tmp_path)}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60 * patience(), env=environment
    )
    assert done.returncode == 3 and "python -m engine models add smollm2" in done.stderr


@pytest.mark.large
@needs_vllm
def test_vllm_and_torch_write_what_the_learner_computes():
    small = ("--sequences", "1", "4", "--prompt", "16", "--tokens", "8", "--rounds", "1")
    result = measured("vllm", *small)
    assert set(result["ratios"]) == {"vllm_over_torch_1", "vllm_over_torch_4"}
    for name in ("torch", "vllm"):
        assert 0 < result["figures"][f"{name}_gap_nats"] < 1e-3
        assert result["figures"][f"{name}_4_tokens_per_second"] > 0
    assert result["figures"]["choose_for_4"] in ("torch", "vllm")


@pytest.mark.large
@pytest.mark.browser
def test_the_run_page_shows_all_that_was_sent_in_every_part():
    small = ("--nodes", "60", "--seconds", "0.5", "--events", "500", "--hour-steps", "2",
             "--points", "2000")  # fmt: skip
    result = measured("ui", *small)
    goals = {"frame_ms_p95_5000_nodes", "frame_ms_p95_20000_nodes", "open_1m_events_ms",
             "zoom_1m_points_ms", "js_kb_compressed"}  # fmt: skip
    assert goals <= set(result["ratios"])
    assert all(value > 0 for value in result["ratios"].values())
    assert result["figures"]["points"] == 2000 and result["figures"]["events"] >= 500
    assert result["figures"]["heap_mb_after_hour"] > 0


def test_no_benchmark_is_left_unstarted():
    here = {"prefix_training", "async", "step", "pretrained", "vllm", "ui"}
    assert here | STARTED_ELSEWHERE == set(MEASUREMENTS)
