"""Claims that compare teams by how they were trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.claims.claim import Arm, Claim, Figure, Plan, Search
from benchmarks.claims.figures import OF_TRAINING, OF_UPDATES, PASS_1, PASS_8, PPO_CLIPPED, TREE_1
from benchmarks.claims.teams import DEEPER, agent, in_roles, single

DEEP_OAK = f"{DEEPER}oak:5"
"""1,074,752 weights; oak and fern together have 986,000."""

BEST = Figure("samples/pass@1", "best of 8 samples by public tests")
OF_STRONG = Figure("pass@1/strong", "Pass@1 of the strong model")
OF_WEAK = Figure("pass@1/weak", "Pass@1 of the weak model")

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
        minibatches=1,
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


def papers_arms() -> Claim:
    """Returns the arms of 2604.14564's tables with the controls that they lack."""
    oak, fern = (single(f"starter:{name}") for name in ("oak", "fern"))
    halves = tuple(
        Arm(f"half-{name}", f"{name} alone on half the nodes: as many as it has in the team "
            "(`tree-single`)", "tree-single", settings, trees=0.5, equal=(), decides=name == "oak")
        for name, settings in (("oak", oak), ("fern", fern))
    )  # fmt: skip
    flat = {"search.max_depth": 1, "credit.dynamic_filter": True}
    return Claim(
        name="papers-arms",
        title="The papers' arms, and the controls that they lack",
        statement="Two models that are trained in one tree answer more problems by their search "
        "than one model trained by GRPO, one alone in a tree, one in two roles, one that has the "
        "nodes or the weights of both, and the two trained apart.",
        control=TEAM.name,
        expected="lower",
        primary=TREE_1.name,
        equal=("nodes", "learned_tokens"),
        figures=(TREE_1, PASS_1, PASS_8, BEST, *OF_TRAINING[3:]),
        arms=(
            TEAM,
            Arm("untrained", "oak and fern as they are shipped", trained=False, equal=(),
                decides=False),
            Arm("grpo-oak", "oak alone, 8 independent answers per problem (`grpo`)", "grpo",
                oak | flat),
            *halves,
            Arm("single-oak", "oak alone with the nodes of both (`tree-single`)", "tree-single",
                oak),
            Arm("single-deep", "oak alone with three more layers, which begin as the identity: the "
                "nodes and the weights of both (`tree-single`)", "tree-single",
                single(DEEP_OAK), equal=("nodes", "learned_tokens", "parameters")),
            Arm("two-roles", "oak in two roles, one set of weights (`mars2-homogeneous`)",
                "mars2-homogeneous", in_roles("starter:oak")),
            Arm("trained-apart", "oak and fern, each trained alone on half the nodes, one team in "
                "the evaluation", joined=halves),
        ),
        plan=Plan(problems=120),
        note="All trained arms take two optimizer steps per batch, as the papers do. GRPO has its "
        "recipe's loss, and leaves out trees of equal scores as the others do, so that it learns "
        "from as many tokens. Ten seeds are 1,200 problems. The papers' own differences between "
        "two models and one, 0 to 2.9 points (arXiv 2604.14564, table of LiveCodeBench v6), lie "
        "within one standard error of a rate near 0.6 on their 175 problems, 3.7 points.",
    )  # fmt: skip


def unequal_partners() -> Claim:
    """Returns the claim that a strong model and a weak one both gain from one tree."""

    def alone(name: str, starter: str, own: Figure) -> Arm:
        team = single(f"starter:{starter}")
        about = f"{starter} alone (`tree-single`)"
        return Arm(f"{name}-alone", about, "tree-single", team, reads={own.name: PASS_1.name})

    partners = [agent("strong", "starter:ash"), agent("weak", "starter:oak")]
    return Claim(
        name="unequal-partners",
        title="A strong and a weak model in one tree",
        statement="Trained on the same number of nodes, a team of a strong and a weak starter "
        "answers more problems by its search than either of them alone.",
        control="strong-and-weak",
        expected="lower",
        primary=TREE_1.name,
        equal=("nodes", "learned_tokens"),
        figures=(TREE_1, PASS_1, OF_STRONG, OF_WEAK, *OF_TRAINING[2:]),
        arms=(
            Arm("strong-and-weak", "ash and oak in one shared tree (recipe `demo`)",
                settings={"agents": partners}),
            alone("strong", "ash", OF_STRONG),
            alone("weak", "oak", OF_WEAK),
        ),
        note="The problems are fully stated. Before training ash answers about 0.48 of such "
        "problems and oak 0.20.",
    )  # fmt: skip


def _ablation(
    name: str, title: str, statement: str, *arms: Arm, note: str = "", minibatches: int = 1
) -> Claim:
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
        minibatches=minibatches,
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
    flat, bare = {"search.max_depth": 1}, {"search.refinement_statement": False}
    return _ablation(
        "refinement",
        "Refinement in training",
        "A team that is trained on trees with repairs answers more problems than one that is "
        "trained on independent answers.",
        Arm("refinement-off", "every node of training is a child of the root", settings=flat),
        Arm(
            "no-statement",
            "repairs of training see the program and its results, without the "
            "statement (`search.refinement_statement`)",
            settings=bare,
            decides=False,
        ),
        Arm(
            "no-statement-search",
            "the same, and so do those of the evaluation",
            settings=bare,
            search=Search(settings=bare),
            decides=False,
        ),
        note="The first three arms are evaluated by the same search, which repairs and shows the "
        "statement. The published code of MARS² sends refinement prompts without the statement.",
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
        minibatches=2,
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
        "they clip in runs of the same problems, and has no say in the outcome. What PPO would "
        "have clipped in each run itself is counted from the ratios of its tokens.",
        needs=(PPO_CLIPPED.name,),
    )
