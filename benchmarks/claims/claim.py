"""Types of a claim: a statement under test, its arms, and what is compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Expected = Literal["higher", "lower"]
Budget = Literal["nodes", "learned_tokens", "parameters"]
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """A compared figure; `name` is its key in a cell's `figures`."""

    name: str
    label: str


@dataclass(frozen=True)
class Search:
    """An evaluation: nodes of its trees, and settings that differ from the engine's defaults."""

    nodes: int = 8
    settings: Settings = field(default_factory=dict)
    reward_model: bool = False
    """Train a reward model on the nodes of the training run, and let it select the answer."""


@dataclass(frozen=True)
class Arm:
    """One way that a claim compares: how a team is trained, and how it is measured."""

    name: str
    about: str
    recipe: str = "demo"
    settings: Settings = field(default_factory=dict)
    """Dotted overrides of the recipe."""
    trained: bool = True
    """False: the starters are measured as they are."""
    search: Search = Search()
    reads: Mapping[str, str] = field(default_factory=dict)
    """Figures that this arm reads under another name, such as those of samples as those of an
    answer."""
    against: str | None = None
    """Arm that it is compared with, unless the claim's control; its own name makes it one."""
    equal: tuple[Budget, ...] | None = None
    """Budgets that must equal those of that arm, unless the claim's."""
    decides: bool = True
    """False: the arm is shown, and has no say in the claim's outcome."""
    trees: float = 1.0
    """Share of the plan's trees per step that its training takes."""
    joined: tuple[Arm, ...] = ()
    """Arms of one agent each, whose trained models are measured as one team, in the order of this
    arm's agents. It trains nothing else; `recipe` and `settings` name the team."""


@dataclass(frozen=True)
class Plan:
    """Size of each cell."""

    steps: int = 30
    trees: int = 12
    """Trees per step, of 8 nodes each."""
    problems: int = 100
    """Unseen problems of the evaluation."""
    samples: int = 16
    """Independent samples per problem, of the team together."""


@dataclass(frozen=True)
class Claim:
    """A statement, and the arms that test it. Invariant: arm names are unique, `control` and every
    `against` is one of them."""

    name: str
    title: str
    statement: str
    """What must be seen for the claim to hold."""
    arms: tuple[Arm, ...]
    control: str
    expected: Expected
    """Whether the statement expects the other arms' primary figure to be higher or lower than the
    control's."""
    figures: tuple[Figure, ...]
    primary: str
    """Name of the figure that decides; the others are shown."""
    goal: float | None = None
    """Difference of the primary figure to the control's that the project aims at."""
    equal: tuple[Budget, ...] = ("nodes",)
    note: str = ""
    plan: Plan = Plan()
    minibatches: int = 2
    """Optimizer steps per batch of its trainings, for arms that do not name a number. With 1 every
    ratio is 1, and no loss clips."""
    needs: tuple[str, ...] = ()
    """Figures without which a result is measured again, such as those that later results have."""

    def arm(self, name: str) -> Arm:
        return next(arm for arm in self.arms if arm.name == name)

    def control_of(self, arm: Arm) -> Arm | None:
        """Returns the arm that this one is compared with; None for a control."""
        name = arm.against or self.control
        return None if name == arm.name else self.arm(name)

    def budgets_of(self, arm: Arm) -> tuple[Budget, ...]:
        return self.equal if arm.equal is None else arm.equal
