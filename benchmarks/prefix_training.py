"""Speedup of updates that forward shared prefixes once, against padded rows.

Whole updates of the learner, including the optimizer, of one small Llama from the same weights on
the same rows, with `training.row_layout` as `auto` and as `padded`: rows of similar length in one
batch, padded to the longest, the learner's fastest layout without sharing. The time of `auto`
includes its choice. The layouts take turns on the same weights, and a round gives one ratio of
their CPU times. Rounds continue until their median is known to 1 %, or the shape's seconds are
used up.

Where `auto` produces exactly the layout of `padded`, element by element, both updates run the same
forward and backward passes, and only the choice differs. Its cost is then measured separately: the
ratio is the update's median over both ways, divided by the same plus the extra time of choosing.
The ratio of the rounds is reported as `..._paired`; its distance from 1 there is noise, and a
second padded learner, which takes turns against the first, shows the noise of every shape
(`..._same`). On two shared cores the lowest of 18 such ratios of equal work was between 0.949 and
0.97.

`p512_r64_g8`: one prompt of 512 tokens, 8 responses of 64. `worst`: the lowest ratio over a grid of
prompts, responses and groups, including unshared prompts; `worst_same`: the lowest ratio of padded
against itself. Guard: in every shape no element of the two gradients, scaled to norm 1, differs by
more than 1e-6, or nothing is reported.
"""

from __future__ import annotations

import argparse
import platform
import random
import statistics
import time
from typing import TYPE_CHECKING, Any

from benchmarks import at_least

if TYPE_CHECKING:
    from torch import Tensor

    from engine.policy.learner.layout import MicroBatches
    from engine.policy.learner.learner import Learner
    from engine.policy.learner.rows import TrainingRow

SUMMARY = "updates that forward shared prefixes once, against padded rows"
GOALS = {"p512_r64_g8": at_least(2), "worst": at_least(0.95)}
VOCABULARY, TOLERANCE = 1024, 1e-6
CHOICES = 51
PRECISION = 0.01
"""Standard error of a shape's ratio, as a share of it, at which its rounds end."""
Shape = tuple[int, int, int, int]
"""Tokens of a prompt, tokens of a response, responses per prompt, prompts."""
MAIN: Shape = (512, 64, 8, 1)
GRID: tuple[Shape, ...] = (
    (512, 64, 1, 1), (512, 64, 1, 4), (512, 16, 4, 1), (512, 256, 2, 1), (128, 64, 4, 2),
    (128, 64, 1, 8), (128, 256, 4, 1), (128, 16, 16, 1), (64, 512, 2, 1), (32, 32, 8, 2),
    (16, 16, 1, 1), (16, 16, 16, 1), (16, 16, 1, 16), (16, 256, 4, 1), (16, 256, 1, 4),
    (8, 512, 2, 1), (1, 64, 16, 1),
)  # fmt: skip
SHAPES = {"p{}_r{}_g{}_n{}".format(*shape): shape for shape in (MAIN, *GRID)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=5, help="rounds per shape, at least")
    parser.add_argument(
        "--seconds", type=float, default=6.0, help="no more rounds for a shape after so many"
    )
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument("--shapes", nargs="+", metavar="SHAPE", choices=sorted(SHAPES),
                        default=list(SHAPES), help=f"only these: {', '.join(SHAPES)}")  # fmt: skip


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Returns ratios, figures and versions; times are CPU time of one update."""
    import torch
    import transformers

    torch.set_num_threads(arguments.threads)
    figures: dict[str, Any] = {"model": "llama, 4 layers of 256", "threads": arguments.threads}
    ratios = {}
    for name in arguments.shapes:
        ratios[name], shape_figures = _compared(SHAPES[name], arguments)
        figures |= {f"{name}_{key}": value for key, value in shape_figures.items()}
    figures["worst_same"] = min(figures[f"{name}_same"] for name in ratios)
    worst = min(ratios, key=lambda name: ratios[name])
    figures["worst_shape"] = worst
    main = {name[:-3]: round(ratio, 2) for name, ratio in ratios.items() if SHAPES[name] == MAIN}
    return {
        "ratios": main | {"worst": round(ratios[worst], 3)},
        "figures": figures,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
    }


def _compared(shape: Shape, arguments: argparse.Namespace) -> tuple[float, dict[str, Any]]:
    """Returns (how many times faster `auto` is, its figures) on rows of one shape."""
    rows = _rows(shape)
    learners = _learners()
    gradients = {layout: _updated(learner, rows) for layout, learner in learners.items()}
    difference = _max_difference(gradients["padded"], gradients["auto"])
    if not difference <= TOLERANCE:
        raise RuntimeError(
            f"{shape}: the gradients are {difference:.1g} apart; nothing can be compared"
        )
    seconds: dict[str, list[float]] = {layout: [] for layout in learners}
    ratios: dict[str, list[float]] = {"auto": [], "same": []}
    cut = learners["auto"].layout.micro_batches(rows)
    identical = _equal(cut, learners["padded"].layout.micro_batches(rows))
    ended = time.process_time() + arguments.seconds
    while len(ratios["auto"]) < arguments.rounds or (
        not identical and _error(ratios["auto"]) > PRECISION and time.process_time() < ended
    ):
        turn = list(learners) if len(ratios["auto"]) % 2 else list(reversed(learners))
        for layout in turn:
            started = time.process_time()
            learners[layout].update(rows, 0.5)
            seconds[layout].append(time.process_time() - started)
        for layout, values in ratios.items():
            values.append(seconds["padded"][-1] / seconds[layout][-1])
    paired, same = (statistics.median(values) for values in ratios.values())
    ratio, choice = paired, {}
    if identical:
        update = statistics.median([*seconds["padded"], *seconds["auto"]])
        extra = _choosing(learners["auto"], rows) - _choosing(learners["padded"], rows)
        ratio, choice = update / (update + extra), {"choosing_ms": round(1000 * extra, 3)}
    return ratio, {
        "ratio": round(ratio, 3),
        "paired": round(paired, 3),
        "paired_error": round(_error(ratios["auto"]), 3),
        "same": round(same, 3),
        "rounds": len(ratios["auto"]),
        "layout": str(cut.layout),
        **choice,
        "padded_ms": round(1000 * statistics.median(seconds["padded"]), 2),
        "auto_ms": round(1000 * statistics.median(seconds["auto"]), 2),
        "tokens": f"{cut.forwarded} of {_tokens(rows)}",
        "gradients_apart": float(f"{difference:.1e}"),
    }


def _tokens(rows: list[TrainingRow]) -> int:
    """Returns the number of input tokens of all rows."""
    return sum(len(row.prompt_ids) + len(row.output_ids) - 1 for row in rows)


def _equal(one: MicroBatches, other: MicroBatches) -> bool:
    """Returns whether two layouts have the same passes, element by element."""
    from dataclasses import fields

    if one.layout != other.layout or len(one.parts) != len(other.parts):
        return False
    return all(
        type(a) is type(b)
        and all(_same(getattr(a, each.name), getattr(b, each.name)) for each in fields(a))
        for a, b in zip(one.parts, other.parts, strict=True)
    )


def _same(a: Any, b: Any) -> bool:
    import torch

    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def _choosing(learner: Learner, rows: list[TrainingRow]) -> float:
    """Returns the CPU seconds of laying out the rows; the median of `CHOICES`."""
    taken = []
    for _ in range(CHOICES):
        started = time.process_time()
        learner.layout.micro_batches(rows)
        taken.append(time.process_time() - started)
    return statistics.median(taken)


def _error(ratios: list[float]) -> float:
    """Returns the standard error of the median, as a share of it, from the median absolute
    deviation: robust to outliers."""
    middle = statistics.median(ratios)
    spread = 1.4826 * statistics.median(abs(ratio - middle) for ratio in ratios)
    return 1.2533 * spread / len(ratios) ** 0.5 / middle


def _rows(shape: Shape) -> list[TrainingRow]:
    from engine.policy.learner.rows import TrainingRow

    prompt, response, group, prompts = shape
    draw = random.Random(repr(shape))

    def tokens(count: int) -> list[int]:
        return [draw.randrange(VOCABULARY) for _ in range(count)]

    return [
        TrainingRow(own, tokens(response), [-7.0] * response, draw.gauss(0, 1), 0)
        for own in [tokens(prompt) for _ in range(prompts)]
        for _ in range(group)
    ]


def _learners() -> dict[str, Learner]:
    """Returns a learner by layout, and a second padded one. They share the same weights, since the
    position of these in memory affects times too."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from engine.config.agents import AgentConfig, OptimizerConfig
    from engine.config.loss import LossConfig
    from engine.config.training import TrainingConfig
    from engine.policy.learner.learner import Learner
    from engine.policy.models.weights import FullWeights

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=704, max_position_embeddings=1024,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    weights = FullWeights(model, reload=lambda directory: model, reference=False)
    # Such a small step changes nothing: every update begins from the same weights.
    still = AgentConfig(name="still", model="-", optimizer=OptimizerConfig(learning_rate=1e-30))
    loss = LossConfig(policy="ppo", clip_low=0.2, clip_high=0.28, kl_coefficient=0.0)
    plans = {
        name: TrainingConfig(row_layout=layout, max_staleness=10**6)
        for name, layout in (("padded", "padded"), ("auto", "auto"), ("same", "padded"))
    }
    return {layout: Learner(weights, 0, still, loss, plan) for layout, plan in plans.items()}


def _updated(learner: Learner, rows: list[TrainingRow]) -> list[Tensor]:
    """Returns the gradients of one update, clipped to norm 1."""
    learner.update(rows, 0.5)
    return [p.grad.clone() for p in learner.weights.trained() if p.grad is not None]


def _max_difference(one: list[Tensor], other: list[Tensor]) -> float:
    from torch.nn.utils import get_total_norm

    differences = [float((a - b).abs().max()) for a, b in zip(one, other, strict=True)]
    return max(differences) / float(get_total_norm(one))
