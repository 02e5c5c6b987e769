"""Generators: token ids in, token ids and log-probabilities out.

One module each, with a line in `GENERATORS` and a function `make`. A module is imported when an
agent names it: vLLM is an extra.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from engine.config.agents import AgentConfig, GeneratorName, SamplingConfig
from engine.config.schema import RunConfig
from engine.policy.generators.counter_rng import row_seed
from engine.policy.types import Generation

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from engine.policy.models.load import LoadedModel
    from engine.policy.models.weights import Weights

GENERATORS = {
    GeneratorName.TORCH: "engine.policy.generators.torch_generator",
    GeneratorName.VLLM: "engine.policy.generators.vllm_generator",
}


@dataclass(frozen=True)
class Setup:
    """What a generator is made from: the agents of one policy, the owner first, and its weights."""

    agents: Sequence[AgentConfig]
    run: RunConfig
    policy: LoadedModel
    weights: Weights
    seed: int


class GeneratorError(RuntimeError):
    """A generator cannot start or go on; names the agent, the first cause and the remedy."""


class Generator(ABC):
    """Samples answers from weights that change between calls.

    What is drawn for an answer follows from its own seed. One without follows from `seed` and its
    place among all that were asked for without one, of which `asked` is the number.
    """

    model: PreTrainedModel
    seed: int
    asked: int = 0

    def use(self, model: PreTrainedModel, version: int) -> None:
        """Sample from the weights of this model from now on. They change with their version
        only."""
        self.model = model

    @property
    @abstractmethod
    def unfinished(self) -> int:
        """Answers that are being written or wait."""

    @abstractmethod
    def submit(
        self,
        prompts: Sequence[list[int]],
        sampling: Sequence[SamplingConfig],
        version: int,
        seeds: Sequence[int] | None = None,
    ) -> list[int]:
        """Let answers join what is being written, of the version that `use` named; `ended` gives
        them by these tickets."""

    @abstractmethod
    def ended(self, least: int, seconds: float) -> dict[int, Generation]:
        """Write on until so many more have ended, or so many seconds have passed, or nothing is
        left; what has ended, by ticket."""

    @abstractmethod
    def abandon(self) -> None:
        """Drop whatever is being written."""

    def generate(
        self,
        prompts: Sequence[list[int]],
        sampling: SamplingConfig | Sequence[SamplingConfig],
        version: int,
        seeds: Sequence[int] | None = None,
    ) -> list[Generation]:
        """One answer per prompt, in order, of the version that `use` named; settings for all or for
        each.

        Raises:
            RuntimeError: answers are being written that `ended` is to give.
        """
        if self.unfinished:
            raise RuntimeError(f"{self.unfinished} answers are under way; take them by `ended`")
        each = [sampling] * len(prompts) if isinstance(sampling, SamplingConfig) else sampling
        tickets = self.submit(prompts, each, version, seeds)
        found: dict[int, Generation] = {}
        try:
            while self.unfinished:
                found |= self.ended(self.unfinished, math.inf)
        except BaseException:
            self.abandon()
            raise
        return [found[ticket] for ticket in tickets]

    def rest(self) -> None:  # noqa: B027
        """Leave the device to the learner until `use` is called again; weights may change."""

    def forget(self) -> None:  # noqa: B027
        """Know no prompt any more: what is drawn from here on is the same to the last bit, whatever
        was written before."""

    def recall(self, scope: str = "") -> None:  # noqa: B027
        """From here on know the prompts of this scope only. Those of the empty one are kept beside
        it, so that other scopes leave no trace on it; those of any other are forgotten."""

    def row_seeds(self, count: int) -> list[int]:
        """The seeds of so many answers that have none of their own."""
        first, self.asked = self.asked, self.asked + count
        return [row_seed(self.seed, "place", place) for place in range(first, self.asked)]

    def close(self) -> None:  # noqa: B027
        """End whatever was started."""


def make_generator(setup: Setup) -> Generator:
    """The generator that the owner of the weights names.

    Raises:
        GeneratorError: it could not start.
    """
    name = setup.agents[0].generator.name
    return import_module(GENERATORS[name]).make(setup)
