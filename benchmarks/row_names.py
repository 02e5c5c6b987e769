"""Plain names of the rows of measurements: what is measured, and against whom.

A row without a name here is shown by its key; a test keeps the two lists equal.
"""

from __future__ import annotations

from typing import NamedTuple


class RowName(NamedTuple):
    what: str
    against: str
    """Empty for a row that is a quantity of its own."""


_FRESH = "a fresh Python per program"
_TREEQUEST = "TreeQuest"
_PER_NODE = "search, per node of a tree of 64"
_GENERATE = "transformers' `generate`"
_TRL = "TRL's GRPOTrainer"
ROWS: dict[str, dict[str, RowName]] = {
    "sandbox": {
        "vs_fresh_python": RowName("verify right programs", _FRESH),
        "vs_manager": RowName("verify right programs", "a multiprocessing Manager per program"),
        "vs_bwrap_python": RowName("verify right programs", "a fresh Python in bubblewrap"),
        "wrong_vs_fresh_python": RowName("verify wrong programs", _FRESH),
        "wrong_with_state_vs_fresh_python_alone": RowName(
            "verify wrong programs that keep state, ten tests alone", "a fresh Python per test"
        ),
    },
    "search": {
        "vs_treequest_step_64": RowName(_PER_NODE, f"{_TREEQUEST}'s step()"),
        "vs_treequest_inplace_64": RowName(_PER_NODE, f"{_TREEQUEST} in place"),
        "growth_4096_over_64": RowName("cost per node and level, 4,096 nodes", "64 nodes"),
    },
    "expansion": {
        "k4_speedup": RowName("grow a tree, four nodes in flight", "one in flight"),
        "trees16_over_1": RowName("seconds of sixteen trees at once", "each alone"),
    },
    "prefix_training": {
        "p512_r64_g8": RowName("update, 8 answers of 64 tokens to a prompt of 512", "padded rows"),
        "worst": RowName("update, the worst of all shapes", "padded rows"),
    },
    "async": {
        "overlap": RowName("steps with generation and learning overlapped", "alternating"),
        "overlap_ahead": RowName(
            "the same, two steps ahead, answers carried on with new weights", "alternating"
        ),
    },
    "siblings": {
        "vs_one_by_one": RowName("generate 8 answers to one prompt", "one after the other"),
        "vs_batch": RowName("generate 8 answers to one prompt", "one plain batch"),
        "vs_transformers": RowName("generate 8 answers to one prompt", _GENERATE),
    },
    "step": {
        "vs_trl": RowName("GRPO step, statements with examples", _TRL),
        "vs_trl_without_verify": RowName("the same, without verification", _TRL),
        "vs_trl_bare": RowName("GRPO step, statements without examples", _TRL),
        "vs_trl_bare_without_verify": RowName("the same, without verification", _TRL),
    },
    "pretrained": {
        "vs_transformers_8": RowName("SmolLM2, 8 sequences", f"{_GENERATE}, float32"),
        "same_dtype_8": RowName("the same, both in float32", _GENERATE),
        "vs_bfloat16_8": RowName("SmolLM2, 8 sequences", f"{_GENERATE}, bfloat16"),
        "vs_transformers_32": RowName("SmolLM2, 32 sequences", f"{_GENERATE}, float32"),
        "same_dtype_32": RowName("the same, both in float32", _GENERATE),
        "vs_bfloat16_32": RowName("SmolLM2, 32 sequences", f"{_GENERATE}, bfloat16"),
        "vs_trl": RowName("SmolLM2, GRPO step with adapters", _TRL),
        "vs_trl_update": RowName("the same, update alone", _TRL),
        "vs_trl_float32": RowName("the same, both in float32", _TRL),
        "vs_trl_bfloat16": RowName("the same", f"{_TRL}, bfloat16"),
    },
    "vllm": {
        f"vllm_over_torch_{n}": RowName(f"vLLM on this CPU, {n} at once", "the torch generator")
        for n in (1, 16, 64, 256)
    },
    "tracking": {
        f"{clock}_vs_{peer}": RowName(what, name)
        for clock, what in (
            ("call", "log 100,000 numbers, what the program waits for"),
            ("stored", "log 100,000 numbers, until all are stored"),
        )
        for peer, name in (("wandb", "W&B offline"), ("mlflow", "MLflow"), ("trackio", "Trackio"))
    },
    "api": {
        "max_queries": RowName("most database queries of a page", ""),
        "list_p95_ms": RowName("list 50 of 10,000 runs, 95th percentile, ms", ""),
        "log_100k_scalars_vs_mlflow": RowName("log 100,000 scalars", "MLflow"),
        "read_100k_series_vs_mlflow": RowName("read a series of 100,000 points", "MLflow"),
        "list_1000_runs_vs_mlflow": RowName("list 1,000 runs", "MLflow"),
        "log_100k_scalars_vs_trackio": RowName("log 100,000 scalars", "Trackio"),
        "read_100k_series_vs_trackio": RowName("read a series of 100,000 points", "Trackio"),
    },
    "ui": {
        "frame_ms_p95_5000_nodes": RowName("frame of a live tree of 5,000 nodes, ms", ""),
        "frame_ms_p95_20000_nodes": RowName("frame of a step of 20,000 nodes, ms", ""),
        "open_1m_events_ms": RowName("open a run of a million events, ms", ""),
        "zoom_1m_points_ms": RowName("zoom into a million points, ms", ""),
        "js_kb_compressed": RowName("JavaScript of the run page, KB compressed", ""),
    },
}  # fmt: skip


def row_name(measurement: str, row: str) -> RowName:
    """Returns the plain name of a row; its key if it has none."""
    return ROWS.get(measurement, {}).get(row) or RowName(f"`{row}`", "")
