"""Claims that compare searches of one team, which has the same weights in every arm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.claims.claim import Arm, Claim, Figure, Plan, Search, Settings
from benchmarks.claims.figures import (
    ANSWER_1,
    ATTEMPTS,
    OF_ANSWERS,
    OF_REPAIRS,
    OF_SEARCH,
    TREE_1,
    attempts_key,
    by_readings,
)
from benchmarks.claims.trainings import uniform_choices
from engine.config.problems import FEW_READINGS, MANY_READINGS

DECIDING, *SHOWN = 8, 16, 60
"""Nodes of the trees; larger trees are shown, since there as many samples guess every reading."""
SWITCHED = 60
"""Nodes at which the switches of MARS²-T+ are compared."""
CHOSEN = 16
"""Nodes at which the choices of a search are compared."""
NOTHING: Settings = {}
PLAN = Plan(samples=2)
"""Samples outside of trees are not compared here: one of each agent."""


@dataclass(frozen=True)
class Family:
    """Problems on which a search is measured."""

    words: str
    note: str
    settings: Settings
    goal: float
    """Difference of a tree and as many samples that is aimed at."""
    name: str = ""
    """Part of the names of its claims."""
    readings: Sequence[int] = ()
    """Numbers of readings for which figures are also shown one by one."""

    @property
    def title(self) -> str:
        return f" on {self.words}" if self.name else ""


STATED = Family(
    "fully stated problems",
    "The statement of each problem says all that its tests check.",
    {"problems.underspecified_share": 0.0},
    goal=-0.01,
)
UNDERSPECIFIED = {"problems.underspecified_share": 1.0}
OPEN = Family(
    "underspecified problems",
    "The statement of each problem has 2, 3, 4, 6 or 8 readings, of which the tests mean one: a "
    "first answer has to guess, and the failing public tests that a repair sees leave one reading.",
    UNDERSPECIFIED,
    goal=0.1,
    name="underspecified",
    readings=FEW_READINGS,
)
SEVERAL = Family(
    "problems with several open details",
    "The statement of each problem leaves two or three details open, which have 12 or 16 readings "
    "together; the demonstrations and the training had at most 8.",
    {**UNDERSPECIFIED, "problems.fewest_readings": 12, "problems.most_readings": 16},
    goal=0.1,
    name="several-details",
    readings=MANY_READINGS,
)
FAMILIES = (STATED, OPEN, SEVERAL)
"""Families on which trees are compared with samples."""


@dataclass(frozen=True)
class Subject:
    """The team ash and rowan, trained or not, and the problems on which it is measured."""

    family: Family
    trained: bool

    @property
    def team(self) -> str:
        return "trained team" if self.trained else "team of starters"

    @property
    def note(self) -> str:
        training = "trained by the recipe `demo-mixture`: half of its problems are underspecified"
        return (
            f"{self.family.note} The team is ash and rowan, "
            f"{training if self.trained else 'as they are shipped'}."
        )

    @property
    def repairs(self) -> tuple[Figure, ...]:
        """Figures of the training that explain the tree's on underspecified problems."""
        return OF_REPAIRS if self.trained and self.family is OPEN else ()

    def name(self, before: str) -> str:
        parts = (before, self.family.name, "" if self.trained else "starters")
        return "-".join(filter(None, parts))

    def title(self, before: str) -> str:
        when = "trained team" if self.trained else "before training"
        return f"{before}{self.family.title}, {when}"

    def arm(
        self, name: str, about: str, nodes: int, settings: Settings = NOTHING, **more: Any
    ) -> Arm:
        """Returns an arm of this team; `settings` are further ones of its search."""
        search = Search(nodes, {**self.family.settings, **settings})
        return Arm(name, about, "demo-mixture", NOTHING, self.trained, search, **more)


def subjects(*families: Family) -> Iterator[Subject]:
    """Yields the trained team and the starters on each family."""
    for family in families:
        yield from (Subject(family, trained=True), Subject(family, trained=False))


def starters(*families: Family) -> Iterator[Subject]:
    """Yields the starters alone on each family."""
    yield from (Subject(family, trained=False) for family in families)


def tree_or_samples(of: Subject) -> Claim:
    figures = (ANSWER_1, *by_readings(ANSWER_1, of.family.readings), *OF_ANSWERS, *of.repairs)
    arms: list[Arm] = []
    for size in (DECIDING, *SHOWN):
        samples = f"samples-{size}"
        for part, name, about in (
            ("samples", samples, f"{size} independent samples of the {of.team}"),
            ("tree", f"tree-{size}", f"a tree of {size} nodes of the {of.team}"),
        ):
            reads = {one.name: one.name.replace("answer", part, 1) for one in figures}
            more = {"reads": reads, "against": samples, "decides": size == DECIDING}
            arms.append(of.arm(name, about, size, **more))
    return Claim(
        name=of.name("" if of.family.name else "tree-samples"),
        title=of.title("Tree or samples"),
        statement=f"On {DECIDING} nodes, the search of the {of.team} answers more "
        f"{of.family.words} than as many independent samples, of which the same rule selects.",
        control=f"samples-{DECIDING}",
        expected="higher",
        primary=ANSWER_1.name,
        goal=of.family.goal if of.trained else None,
        equal=("nodes", "parameters"),
        figures=figures,
        arms=tuple(arms),
        note=f"{of.note} Trees of {' and '.join(map(str, SHOWN))} nodes are shown and do not "
        "decide.",
        plan=PLAN,
        minibatches=1,
        needs=tuple(map(attempts_key, ATTEMPTS)),
    )


def feedback(of: Subject) -> Claim:
    """Returns the claim that a tree's repairs need the results of the tests."""
    blind = {"search.error_feedback": False}
    return Claim(
        name=of.name("feedback"),
        title=of.title("Feedback of the tests"),
        statement=f"On {DECIDING} nodes, a {of.team} whose repairs see the results on the public "
        f"tests answers more {of.family.words} than one whose repairs see the program alone.",
        control="feedback",
        expected="lower",
        primary=TREE_1.name,
        equal=("nodes", "parameters"),
        figures=(TREE_1, *by_readings(TREE_1, of.family.readings), *OF_SEARCH[1:]),
        arms=(
            of.arm("feedback", "repairs see the results on the public tests", DECIDING),
            of.arm("feedback-off", "repairs see the program alone", DECIDING, blind),
        ),
        note=f"{of.note} Both arms have the same weights, which have seen repairs with feedback.",
        plan=PLAN,
        minibatches=1,
    )


def public_score(of: Subject) -> Claim:
    """Returns the claim that the share of public tests guides and selects better than all or
    nothing."""
    binary = {"evaluation.score": "binary"}
    return Claim(
        name=of.name("public-score"),
        title=of.title("Share of public tests, or all of them"),
        statement=f"On {DECIDING} nodes, a {of.team} whose search is scored by the share of public "
        f"tests answers more {of.family.words} than one whose nodes score 1 if all of them pass, "
        "and 0 otherwise.",
        control="share",
        expected="lower",
        primary=TREE_1.name,
        equal=("nodes", "parameters"),
        figures=OF_SEARCH,
        arms=(
            of.arm("share", "the share of public tests that pass", DECIDING),
            of.arm("all", "1 if every public test passes, and 0 otherwise", DECIDING, binary),
        ),
        note=f"{of.note} The second arm is the papers' Pass@1(tree).",
        plan=PLAN,
    )


def thompson() -> Claim:
    arms = (
        Arm(name, about, search=Search(CHOSEN, settings))
        for name, about, settings in uniform_choices()
    )
    return Claim(
        name="thompson-search",
        title="Thompson or uniform choice, at test time",
        statement=f"On {CHOSEN} nodes, Thompson sampling over agents and nodes answers more "
        "problems than uniform choices, with the same trained team.",
        control="thompson",
        expected="lower",
        primary=TREE_1.name,
        equal=("nodes", "parameters"),
        figures=OF_SEARCH,
        arms=(Arm("thompson", "Thompson sampling of both", search=Search(CHOSEN)), *arms),
        plan=PLAN,
        minibatches=1,
    )


def switches() -> Claim:
    depth, off = {"search.rho": 0.97}, {"search.error_feedback": False}

    def arm(name: str, about: str, settings: Settings = NOTHING, reward_model: bool = False) -> Arm:
        return Arm(name, about, search=Search(SWITCHED, settings, reward_model))

    return Claim(
        name="search-switches",
        title=f"The three switches of MARS²-T+ at {SWITCHED} nodes",
        statement=f"On {SWITCHED} nodes, each switch of MARS²-T+, and all three together, raise "
        "the share of problems that the same trained team answers.",
        control="none",
        expected="higher",
        primary=TREE_1.name,
        equal=("nodes", "parameters"),
        figures=OF_SEARCH,
        arms=(
            arm("none", "no switch", off),
            arm("feedback", "error feedback"),
            arm("depth", "depth-guided exploration, rho = 0.97", off | depth),
            arm("reward-model", "a reward model chooses among equals", off, reward_model=True),
            arm("all", "all three", depth, reward_model=True),
        ),
        note="The reward model is trained on the nodes of the same seed's training run; its "
        "weights are not counted among the parameters.",
        plan=PLAN,
        minibatches=1,
    )
