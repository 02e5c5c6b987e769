"""Claims that compare teams by how they were trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.claims.claim import Arm, Claim
from benchmarks.claims.figures import OF_TRAINING, OF_UPDATES, TREE_1
from benchmarks.claims.teams import DEEPER, in_roles, single

DEEP_OAK = f"{DEEPER}oak:5"
"""1,074,752 weights; oak and fern together have 986,000."""

TEAM = Arm("two-models", "oak and fern, different weights, one shared tree (recipe `demo`)")


def team() -> Claim:
    return Claim(
        name="team",
        title="One agent, one model in two roles, two models",
        statement="Trained on the same number of nodes, a team of two models answers more problems "
        "by its search than one model in two roles, and than one model alone.",
        control=TEAM.name,
        expected="lower",
        primary=TREE_1.name,
        equal=("nodes", "learned_tokens"),
        figures=OF_TRAINING,
        arms=(
            TEAM,
            Arm("two-roles", "oak in two roles, one set of weights (`mars2-homogeneous`)",
                "mars2-homogeneous", in_roles("starter:oak")),
            Arm("single-oak", "oak alone (`tree-single`)", "tree-single", single("starter:oak")),
            Arm("single-fern", "fern alone (`tree-single`)", "tree-single", single("starter:fern")),
            Arm("single-deep", "oak alone with three more layers, which begin as the identity: as "
                "many weights as the two models together (`tree-single`)", "tree-single",
                single(DEEP_OAK), equal=("nodes", "learned_tokens", "parameters")),
        ),
    )  # fmt: skip


def _ablation(name: str, title: str, statement: str, *arms: Arm, note: str = "") -> Claim:
    return Claim(
        name=name,
        title=title,
        statement=statement,
        control=TEAM.name,
        expected="lower",
        primary=TREE_1.name,
        equal=("nodes", "learned_tokens", "parameters"),
        figures=OF_TRAINING,
        arms=(TEAM, *arms),
        note=note,
    )


def shaping() -> Claim:
    return _ablation(
        "shaping",
        "Reward shaping",
        "A team that learns from shaped rewards answers more problems than one that learns from "
        "raw scores.",
        Arm("shaping-off", "raw scores as rewards", settings={"credit.shaping_gamma": 0.0}),
    )


def advantage() -> Claim:
    own = {"credit.advantage": "per_agent"}
    return _ablation(
        "advantage",
        "Advantage over the tree, or per agent",
        "A team whose advantages are relative to all nodes of a tree answers more problems than "
        "one whose advantages are relative to each agent's own nodes.",
        Arm("per-agent", "each agent's nodes of a tree are a group of their own", settings=own),
    )


def uniform_choices() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yields name, description and settings of each replacement of Thompson sampling."""
    agents, nodes = {"search.agent_choice": "uniform"}, {"search.node_choice": "uniform"}
    yield "uniform-agents", "agents drawn uniformly, nodes by Thompson sampling", agents
    yield "uniform-nodes", "nodes drawn uniformly, agents by Thompson sampling", nodes
    yield "uniform-both", "agents and nodes drawn uniformly", agents | nodes


def thompson() -> Claim:
    return _ablation(
        "thompson-training",
        "Thompson or uniform choice, in training",
        "A team that is trained on trees grown by Thompson sampling answers more problems than one "
        "trained on trees grown by uniform choices.",
        *(Arm(name, about, settings=settings) for name, about, settings in uniform_choices()),
        note="All arms are evaluated by the same search, Thompson sampling.",
    )


def refinement() -> Claim:
    flat = {"search.max_depth": 1}
    return _ablation(
        "refinement",
        "Refinement in training",
        "A team that is trained on trees with repairs answers more problems than one that is "
        "trained on independent answers.",
        Arm("refinement-off", "every node of training is a child of the root", settings=flat),
        note="Both arms are evaluated by the same search, which repairs.",
    )


def feedback() -> Claim:
    blind = {"search.error_feedback": False}
    return _ablation(
        "feedback-training",
        "Feedback of the tests, in training",
        "A team whose repairs in training see the results on the public tests answers more "
        "problems than one whose repairs see the program alone.",
        Arm("feedback-training-off", "repairs of training see the program alone", settings=blind),
        note="Both arms are evaluated by the same search, whose repairs see the results. arXiv "
        "2602.07848 describes error feedback for test time alone.",
    )


def minibatches() -> Claim:
    """Returns the claim that a clipped loss needs several optimizer steps per batch."""

    def arm(count: int) -> Arm:
        steps = "one optimizer step" if count == 1 else f"{count} optimizer steps"
        about = f"{steps} per batch" + (", so every ratio is 1" if count == 1 else "")
        return Arm(f"minibatches-{count}", about, settings={"training.minibatches": count})

    ppo = {"loss.policy": "ppo", "loss.clip_low": 0.2, "loss.clip_high": 0.28}
    return Claim(
        name="minibatches",
        title="Minibatches of a batch, and the share of clipped tokens",
        statement="A team that learns from a batch in several minibatches, so that ratios leave 1 "
        "and the clip acts, answers more problems than one that takes one step per batch.",
        control="minibatches-1",
        expected="higher",
        primary=TREE_1.name,
        equal=("nodes", "learned_tokens", "parameters"),
        figures=OF_UPDATES,
        arms=(
            *map(arm, (1, 2, 4, 8)),
            Arm(
                "ppo-4",
                "4 optimizer steps per batch; a ratio per token, clipped at 0.2 and 0.28",
                settings=ppo | {"training.minibatches": 4},
                against="minibatches-4",
                decides=False,
            ),
        ),
        note="All arms have the recipe `demo` with GSPO's clips of 3e-4 and 4e-4, and the same "
        "learning rate, so that more minibatches also move the weights further per batch. The arm "
        "`ppo-4` has PPO's ratios and clips in place of GSPO's: it shows the share of tokens that "
        "they clip in runs of the same problems, and has no say in the outcome.",
    )
