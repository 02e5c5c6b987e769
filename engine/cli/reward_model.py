"""`python -m engine reward-model`: training of a reward model on the nodes of a run.

Exit status: 0 if it is better than a constant on held-out problems, 1 if it is not (it is saved
anyway), 2 if none could be trained.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.search import count, whole

if TYPE_CHECKING:
    from engine.inference.reward_data import Examples
    from engine.inference.reward_model import Quality


def add_reward_model(command: Any) -> None:
    """Declares the arguments of `reward-model`."""
    command.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="a run that was trained")
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="must not exist")
    command.add_argument(
        "--model", metavar="MODEL", help="initial model; default: the run's first agent"
    )
    command.add_argument(
        "--held-out", type=_share, default=0.2, help="share of problems to measure it on (0.2)"
    )
    command.add_argument("--epochs", type=count, default=12, help="maximum number (12)")
    command.add_argument(
        "--patience", type=count, default=2, help="epochs without improvement before it ends (2)"
    )
    command.add_argument("--learning-rate", type=_share, default=3e-4, help="of the policy (3e-4)")
    command.add_argument("--batch", type=count, default=32, help="programs per step (32)")
    command.add_argument("--seed", type=whole, default=0)
    command.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    command.add_argument("--threads", type=count, default=1, help="of torch, on a CPU (1)")
    command.add_argument("--json", action="store_true", help="one JSON object, for machines")
    command.set_defaults(run=_run)


def _share(text: str) -> float:
    share = float(text)  # argparse reports what is not a number
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(f"{text}: give a number between 0 and 1")
    return share


def _run(arguments: argparse.Namespace) -> int:
    from engine.hub.pins import pinned_reference
    from engine.hub.reference import RepoType
    from engine.inference.agents import team_of
    from engine.inference.reward_data import examples_of_run, split_by_problem
    from engine.policy.models.load import check_model_directory

    if arguments.out.exists():
        raise ValueError(f"{arguments.out} exists; give a directory that does not")
    parts = split_by_problem(examples_of_run(arguments.run_dir), arguments.held_out, arguments.seed)
    model = team_of([arguments.model or str(arguments.run_dir)])[0]["model"]
    model = pinned_reference(model, RepoType.MODEL)
    check_model_directory(model)
    description, measured = _trained(arguments, model, parts)
    if arguments.json:
        print(json.dumps({"directory": str(arguments.out), **description}))
    else:
        print(
            f"{arguments.out}: trained on {len(parts.training)} programs; on "
            f"{measured.programs} of other problems AUC {measured.auc:.3f}, cross-entropy "
            f"{measured.bce:.3f} (constant: {measured.constant_bce:.3f})"
        )
    return 0 if measured.bce < measured.constant_bce else 1


def _trained(
    arguments: argparse.Namespace, model: str, parts: Examples
) -> tuple[dict[str, Any], Quality]:
    """Trains on a model, measures and saves it; returns its description and quality."""
    from rich.console import Console

    with Console(stderr=True).status("loading the policy") as status:
        import torch

        from engine.inference.backends import quiet_libraries
        from engine.inference.reward_model import RewardModel, TrainingPlan, about, quality, train
        from engine.policy.models.load import load_policy

        quiet_libraries()
        torch.set_num_threads(arguments.threads)
        cuda = arguments.device != "cpu" and torch.cuda.is_available()
        plan = TrainingPlan(
            arguments.epochs,
            arguments.patience,
            arguments.learning_rate,
            arguments.batch,
            seed=arguments.seed,
        )
        reward_model = RewardModel.on(load_policy(model, "cuda" if cuda else "cpu"))
        epochs = train(reward_model, parts.training, parts.stopping, plan, status.update)
        status.update("measuring it on held-out problems")
        measured = quality(reward_model, parts.training, parts.held_out)
    source = {"run": str(arguments.run_dir), "model": model, "programs": len(parts.training)}
    description = about(plan, measured, epochs_bce=epochs, **source)
    reward_model.save(arguments.out, description)
    return description, measured
