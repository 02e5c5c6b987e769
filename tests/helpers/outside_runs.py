"""What other trainers log: rows of numbers and trees, healthy ones and one with each fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from webapp.client.tracking.trees import Node, Tree

Row = dict[str, float]


@dataclass(frozen=True)
class Outside:
    """A run: its settings, and each step's row of numbers or its trees."""

    rows: list[tuple[int, Row]] = field(default_factory=list)
    trees: list[list[Tree]] = field(default_factory=list)
    config: Mapping[str, object] = field(default_factory=dict)


def trl(step: int, **figures: float) -> Row:
    """A row as transformers' callbacks log it of a GRPO training."""
    names = {
        "entropy": "train/entropy", "clip": "train/clip_ratio/region_mean",
        "reward": "train/reward", "flat": "train/frac_reward_zero_std",
        "cut": "train/completions/clipped_ratio", "norm": "train/grad_norm",
        "rate": "train/learning_rate", "seconds": "train/step_time",
        "gap": "train/sampling/sampling_logp_difference/mean",
    }  # fmt: skip
    usual = {
        "entropy": 0.6 + 0.05 * (step % 3), "clip": 0.002 * (step % 4), "rate": 1e-5,
        "reward": 0.4 + 0.002 * step + 0.03 * (step % 5), "flat": 0.25 * (step % 3), "gap": 0.01,
        "cut": 0.1 * (step % 2), "norm": 0.4 + 0.1 * (step % 7), "seconds": 20.0 + step % 5,
    }  # fmt: skip
    return {names[name]: value for name, value in {**usual, **figures}.items()} | {
        "train/loss": 0.01 * (step % 9)
    }


def verl(step: int, **figures: float) -> Row:
    """A row as verl's trackers log it; `held_out` is a validation of the step."""
    names = {
        "entropy": "actor/entropy", "clip": "actor/pg_clipfrac", "reward": "critic/score/mean",
        "cut": "response_length/clip_ratio", "norm": "actor/grad_norm", "rate": "actor/lr",
        "seconds": "timing_s/step", "testing": "timing_s/testing", "gap": "rollout_corr/kl",
        "held_out": "val-core/openai/gsm8k/acc/mean@8",
    }  # fmt: skip
    usual = {
        "entropy": 0.3 - 0.001 * step, "clip": 0.01 + 0.001 * (step % 3), "cut": 0.05,
        "reward": 0.3 + 0.004 * step, "norm": 0.2 + 0.02 * (step % 4), "rate": 1e-6,
        "seconds": 30.0, "gap": 0.0005,
    }  # fmt: skip
    return {names[name]: value for name, value in {**usual, **figures}.items()}


def healthy_trl(steps: int = 80) -> Outside:
    return Outside([(step, trl(step)) for step in range(1, steps)], config={"max_grad_norm": 1.0})


def healthy_verl(steps: int = 80) -> Outside:
    """Validated every fifth step, which then takes ten times as long."""
    rows = [
        (step, verl(step, held_out=0.5 + 0.002 * step + 0.01 * (step % 2), seconds=330.0,
                    testing=300.0) if step % 5 == 0 else verl(step))
        for step in range(1, steps)
    ]  # fmt: skip
    return Outside(rows)


def _with(maker, after: int, steps: int = 60, **figures: float) -> Outside:
    """A run whose figures are these from a step on."""
    return Outside(
        [(step, maker(step, **(figures if step > after else {}))) for step in range(1, steps)]
    )


def _falling() -> Outside:
    """Held-out answers grow worse by half while the reward rises."""
    score = [0.6, 0.62, 0.61, 0.6, 0.62, 0.4, 0.38, 0.31, 0.3, 0.29]
    rows = [
        (step, verl(step, held_out=score[step // 5 - 1]) if step % 5 == 0 else verl(step))
        for step in range(1, 52)
    ]
    return Outside(rows)


def _nothing_clipped() -> Outside:
    given = _with(trl, 5, clip=0.0)
    return Outside(given.rows, config={"num_iterations": 2, "max_grad_norm": 1.0})


def trees(step: int, agents: tuple[str, ...] = ("policy",), count: int = 8) -> list[Tree]:
    """Groups of eight answers of their own problem, half of them right."""
    return [
        Tree(f"What is {step} + {number}?", [
            Node(f"Let us add {step} and {number}; thought {n} says that it is {step + number}.",
                 float(n % 2), n % 2 - 0.5, tokens=12, agent=agents[n % len(agents)])
            for n in range(8)
        ])
        for number in range(count)
    ]  # fmt: skip


def _grown(change, steps: int = 9) -> Iterator[list[Tree]]:
    for step in range(1, steps):
        yield [Tree(tree.problem, [change(node) for node in tree.nodes]) for tree in trees(step)]


def _changed(**fields: object) -> Outside:
    def change(node: Node) -> Node:
        given = {name: getattr(node, name) for name in Node.__dataclass_fields__}
        return Node(**{**given, **fields})

    return Outside(trees=list(_grown(change)))


SAME = "I am sorry, but I cannot help with that request, whatever it may be."
LOOP = "We add them. " + "and then again " * 40
FAULTS: dict[str, dict[str, Outside]] = {
    "entropy_collapse": {"TRL": _with(trl, 20, entropy=0.01), "verl": _with(verl, 9, entropy=0.01)},
    "entropy_runaway": {"TRL": _with(trl, 20, entropy=3.0), "verl": _with(verl, 20, entropy=2.5)},
    "equal_groups": {"TRL": _with(trl, 5, flat=1.0), "trees": _changed(reward=0.0, advantage=0.0)},
    "nothing_clipped": {"TRL": _nothing_clipped()},
    "everything_clipped": {"TRL": _with(trl, 20, clip=0.93), "verl": _with(verl, 20, clip=0.95)},
    "mismatch": {"TRL": _with(trl, 20, gap=0.5), "verl": _with(verl, 20, gap=-0.4)},
    "gradient_spike": {"TRL": _with(trl, 57, norm=80.0), "verl": _with(verl, 57, norm=40.0)},
    "held_out_falls": {"verl": _falling()},
    "truncated_answers": {"TRL": _with(trl, 20, cut=0.97), "trees": _changed(is_cut=True)},
    "slow_step": {"TRL": _with(trl, 57, seconds=400.0), "verl": _with(verl, 57, seconds=900.0)},
    "repeated_answers": {"trees": _changed(text=SAME)},
    "answer_loops": {"trees": _changed(text=LOOP, is_cut=True)},
    "idle_agent": {"trees": Outside(trees=[
        trees(step, ("oak", "fern") if step < 4 else ("oak",), 16) for step in range(1, 12)
    ])},
}  # fmt: skip
"""By rule and trainer. Answers in loops are truncated and repeated ones, too."""
HEALTHY = {
    "TRL": healthy_trl(), "verl": healthy_verl(),
    "trees": Outside(trees=[trees(step) for step in range(1, 30)]),
    "letters": _changed(text="B"),
    "supervised": Outside([
        (step, {"train/loss": 1.0, "train/learning_rate": 1e-4,
                "train/grad_norm": 90.0 if step == 50 else 0.5})
        for step in range(1, 70)
    ]),
}  # fmt: skip
