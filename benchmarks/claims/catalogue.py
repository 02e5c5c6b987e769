"""The claims: one entry of `CLAIMS` each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.claims.claim import Arm, Claim, Figure, Search, Settings
from benchmarks.claims.teams import DEEPER, in_roles, single

TREE_1 = Figure("tree/pass@1", "Pass@1(tree)")
PASS_1 = Figure("pass@1", "Pass@1")
PASS_8 = Figure("pass@8", "Pass@8")
TREE_N = Figure("tree/pass@n", "Pass@N of the tree")
DIVERSITY = Figure("samples/effective_clusters", "EA of independent samples")
TREE_DIVERSITY = Figure("tree/effective_clusters", "EA of the tree")
REFINED = Figure("tree/refined", "nodes at depth ≥ 2")
TRAINED_REFINED = Figure("training/refined", "nodes at depth ≥ 2, training")
LEARNED = Figure("learned_tokens", "learned tokens")
SECONDS = Figure("seconds", "seconds")
ANSWER_1 = Figure("answer/pass@1", "Pass@1 of the selected answer")
ANSWER_N = Figure("answer/pass@n", "Pass@N")
ANSWER_DIVERSITY = Figure("answer/effective_clusters", "EA")

OF_TRAINING = (TREE_1, PASS_1, PASS_8, DIVERSITY, TREE_DIVERSITY, TRAINED_REFINED, LEARNED, SECONDS)
OF_SEARCH = (TREE_1, TREE_N, TREE_DIVERSITY, REFINED, SECONDS)
SIZES = (8, 16, 60)
DEEP_OAK = f"{DEEPER}oak:5"
"""1,074,752 weights; oak and fern together have 986,000."""

TEAM = Arm("two-models", "oak and fern, different weights, one shared tree (recipe `demo`)")


def _team() -> Claim:
    return Claim(
        name="team",
        title="One agent, one model in two roles, two models",
        statement="Trained on the same number of nodes, a team of two models answers more problems "
        "by its search than one model in two roles, and than one model alone.",
        control=TEAM.name,
        expected="lower",
        primary="tree/pass@1",
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


def _ablation(name: str, title: str, statement: str, *arms: Arm, **more: Any) -> Claim:
    return Claim(
        name=name,
        title=title,
        statement=statement,
        control=TEAM.name,
        expected="lower",
        primary="tree/pass@1",
        equal=("nodes", "learned_tokens", "parameters"),
        figures=OF_TRAINING,
        arms=(TEAM, *arms),
        **more,
    )


def _shaping() -> Claim:
    off = Arm("shaping-off", "raw scores as rewards", settings={"credit.shaping_gamma": 0.0})
    return _ablation(
        "shaping", "Reward shaping",
        "A team that learns from shaped rewards answers more problems than one that learns from "
        "raw scores.", off,
    )  # fmt: skip


def _advantage() -> Claim:
    own = Arm("per-agent", "each agent's nodes of a tree are a group of their own",
              settings={"credit.advantage": "per_agent"})  # fmt: skip
    return _ablation(
        "advantage", "Advantage over the tree, or per agent",
        "A team whose advantages are relative to all nodes of a tree answers more problems than "
        "one whose advantages are relative to each agent's own nodes.", own,
    )  # fmt: skip


def _uniform(prefix: str = "search.") -> Iterator[tuple[str, str, dict[str, Any]]]:
    agents, nodes = {f"{prefix}agent_choice": "uniform"}, {f"{prefix}node_choice": "uniform"}
    yield "uniform-agents", "agents drawn uniformly, nodes by Thompson sampling", agents
    yield "uniform-nodes", "nodes drawn uniformly, agents by Thompson sampling", nodes
    yield "uniform-both", "agents and nodes drawn uniformly", agents | nodes


def _thompson_training() -> Claim:
    arms = (Arm(name, about, settings=settings) for name, about, settings in _uniform())
    return _ablation(
        "thompson-training", "Thompson or uniform choice, in training",
        "A team that is trained on trees grown by Thompson sampling answers more problems than one "
        "trained on trees grown by uniform choices.", *arms,
        note="All arms are evaluated by the same search, Thompson sampling.",
    )  # fmt: skip


def _thompson_search() -> Claim:
    nodes = 16
    arms = (
        Arm(name, about, search=Search(nodes, settings)) for name, about, settings in _uniform()
    )
    return Claim(
        name="thompson-search",
        title="Thompson or uniform choice, at test time",
        statement=f"On {nodes} nodes, Thompson sampling over agents and nodes answers more "
        "problems than uniform choices, with the same trained team.",
        control="thompson",
        expected="lower",
        primary="tree/pass@1",
        equal=("nodes", "parameters"),
        figures=OF_SEARCH,
        arms=(Arm("thompson", "Thompson sampling of both", search=Search(nodes)), *arms),
    )


def _refinement() -> Claim:
    flat = Arm("refinement-off", "every node of training is a child of the root",
               settings={"search.max_depth": 1})  # fmt: skip
    return _ablation(
        "refinement", "Refinement in training",
        "A team that is trained on trees with repairs answers more problems than one that is "
        "trained on independent answers.", flat,
        note="Both arms are evaluated by the same search, which repairs.",
    )  # fmt: skip


def _switches() -> Claim:
    nodes = 60
    depth = {"search.rho": 0.97}
    off = {"search.error_feedback": False}
    return Claim(
        name="search-switches",
        title="The three switches of MARS²-T+ at 60 nodes",
        statement="On 60 nodes, each switch of MARS²-T+, and all three together, raise the "
        "share of problems that the same trained team answers.",
        control="none",
        expected="higher",
        primary="tree/pass@1",
        equal=("nodes", "parameters"),
        figures=OF_SEARCH,
        arms=(
            Arm("none", "no switch", search=Search(nodes, off)),
            Arm("feedback", "error feedback", search=Search(nodes)),
            Arm("depth", "depth-guided exploration, rho = 0.97", search=Search(nodes, off | depth)),
            Arm("reward-model", "a reward model chooses among equals",
                search=Search(nodes, off, reward_model=True)),
            Arm("all", "all three", search=Search(nodes, depth, reward_model=True)),
        ),
        note="The reward model is trained on the nodes of the same seed's training run; its "
        "weights are not counted among the parameters.",
    )  # fmt: skip


def _answers(part: str) -> dict[str, str]:
    return {
        f"answer/{name}": f"{part}/{name}" for name in ("pass@1", "pass@n", "effective_clusters")
    }


UNDERSPECIFIED = {"problems.underspecified_share": 1.0}
STATED_NOTE = "The statement of each problem says all that its tests check."
OPEN_NOTE = (
    "The statement of each problem has 2 to 8 readings, of which the tests mean one: a first "
    "answer has to guess, and the failing public tests that a repair sees leave one reading."
)


def _tree_or_samples(name: str, title: str, trained: bool, family: Settings) -> Claim:
    team = "trained team" if trained else "team of starters"
    problems = "underspecified problems" if family else "problems"
    training = family if trained else {}
    arms: list[Arm] = []
    for size in SIZES:
        search, samples = Search(size, family), f"samples-{size}"
        arms += [
            Arm(samples, f"{size} independent samples of the {team}", settings=training,
                trained=trained, search=search, reads=_answers("samples"), against=samples),
            Arm(f"tree-{size}", f"a tree of {size} nodes of the {team}", settings=training,
                trained=trained, search=search, reads=_answers("tree"), against=samples),
        ]  # fmt: skip
    return Claim(
        name=name,
        title=title,
        statement=f"On 8, 16 and 60 nodes, the search of the {team} answers more {problems} than "
        "as many independent samples, of which the same rule selects.",
        control=f"samples-{SIZES[0]}",
        expected="higher",
        primary="answer/pass@1",
        equal=("nodes", "parameters"),
        figures=(ANSWER_1, ANSWER_N, ANSWER_DIVERSITY),
        arms=tuple(arms),
        note=OPEN_NOTE if family else STATED_NOTE,
    )


def _feedback(name: str, title: str, trained: bool, family: Settings) -> Claim:
    """Returns the claim that a tree's repairs need the results of the tests."""
    nodes, blind = 16, {**family, "search.error_feedback": False}
    team = "trained team" if trained else "team of starters"
    problems = "underspecified problems" if family else "problems"
    training = family if trained else {}
    arms = (
        Arm("feedback", "repairs see the results on the public tests", settings=training,
            trained=trained, search=Search(nodes, family)),
        Arm("feedback-off", "repairs see the program alone", settings=training,
            trained=trained, search=Search(nodes, blind)),
    )  # fmt: skip
    return Claim(
        name=name,
        title=title,
        statement=f"On {nodes} nodes, a {team} whose repairs see the results on the public tests "
        f"answers more {problems} than one whose repairs see the program alone.",
        control="feedback",
        expected="lower",
        primary="tree/pass@1",
        equal=("nodes", "parameters"),
        figures=OF_SEARCH,
        arms=arms,
        note="Both arms have the same weights, which learned from repairs with feedback. "
        f"{OPEN_NOTE if family else STATED_NOTE}",
    )


CLAIMS: tuple[Claim, ...] = (
    _team(),
    _shaping(),
    _advantage(),
    _tree_or_samples("tree-samples", "Tree or samples, trained team", True, {}),
    _tree_or_samples("tree-samples-starters", "Tree or samples, before training", False, {}),
    _tree_or_samples(
        "underspecified",
        "Tree or samples on underspecified problems, trained team",
        True,
        UNDERSPECIFIED,
    ),
    _tree_or_samples(
        "underspecified-starters",
        "Tree or samples on underspecified problems, before training",
        False,
        UNDERSPECIFIED,
    ),
    _feedback("feedback", "Feedback of the tests, trained team", True, {}),
    _feedback("feedback-starters", "Feedback of the tests, before training", False, {}),
    _feedback(
        "feedback-underspecified",
        "Feedback of the tests on underspecified problems, trained team",
        True,
        UNDERSPECIFIED,
    ),
    _feedback(
        "feedback-underspecified-starters",
        "Feedback of the tests on underspecified problems, before training",
        False,
        UNDERSPECIFIED,
    ),
    _thompson_search(),
    _switches(),
    _refinement(),
    _thompson_training(),
)
BY_NAME = {claim.name: claim for claim in CLAIMS}
