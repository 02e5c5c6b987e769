"""Generators: token ids in, token ids and log-probabilities out.

One module each, with a line in `GENERATORS` and a function `make`. A module is imported when an
agent names it: vLLM is an extra.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from engine.config.agents import AgentConfig, GeneratorName, SamplingConfig
from engine.config.schema import RunConfig
from engine.policy.generators.counter_rng import row_seed
from engine.policy.types import Generation, PartialGeneration

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
    """The inputs of a generator: the agents of one policy, the owner first, and its weights."""

    agents: Sequence[AgentConfig]
    run: RunConfig
    loaded: LoadedModel
    weights: Weights
    seed: int


class GeneratorError(RuntimeError):
    """A generator cannot start or continue; names the agent, the first cause and the remedy."""


class Generator(ABC):
    """Samples answers from weights that change between calls.

    An answer's draws depend on its own seed. Without one they depend on `seed` and the answer's
    index among all requests without a seed, which `request_count` counts.
    """

    model: PreTrainedModel
    seed: int
    request_count: int = 0
    observer: Callable[[], None] | None = None
    """Called after every step that adds tokens to answers in flight, where there are steps."""

    def use(self, model: PreTrainedModel, version: int) -> None:
        """Samples from the weights of this model from now on, which change only with their
        version."""
        self.model = model

    @property
    @abstractmethod
    def unfinished(self) -> int:
        """Number of answers in flight or queued."""

    @abstractmethod
    def submit(
        self,
        prompts: Sequence[list[int]],
        sampling: Sequence[SamplingConfig],
        version: int,
        seeds: Sequence[int] | None = None,
    ) -> list[int]:
        """Adds answers to those in flight, of the version passed to `use`; `ended` returns them
        by these tickets."""

    @abstractmethod
    def ended(self, least: int, seconds: float) -> dict[int, Generation]:
        """Generates until `least` more answers have ended, or `seconds` have passed, or none is in
        flight; returns the finished ones by ticket."""

    def outputs(self, tail: int) -> dict[int, tuple[int, list[int]]]:
        """Returns, by ticket, the number of tokens so far of every answer in flight, and the last
        `tail` of them; nothing for a generator that returns answers only as a whole."""
        return {}

    @abstractmethod
    def take_partial(self) -> dict[int, PartialGeneration]:
        """Stops all answers in flight or queued, wherever they are, and returns them by ticket;
        any that have ended by then remain, for `ended` to return."""

    @abstractmethod
    def carry_on(self, answers: Mapping[int, PartialGeneration], version: int) -> None:
        """Adds answers that `take_partial` returned to those in flight again, under the same
        tickets and before those that are queued; the version passed to `use` samples the rest.

        Keys and values of their tokens so far are computed again with its weights, so that every
        token is drawn from the policy of one version at the context before it (AReaL, Fu et al.,
        arXiv 2505.24298, section 4.1)."""

    @abstractmethod
    def abort(self) -> None:
        """Discards all answers in flight."""

    def generate(
        self,
        prompts: Sequence[list[int]],
        sampling: SamplingConfig | Sequence[SamplingConfig],
        version: int,
        seeds: Sequence[int] | None = None,
        began: Callable[[list[int]], None] = lambda tickets: None,
    ) -> list[Generation]:
        """Returns one answer per prompt, in order, of the version passed to `use`; settings are for
        all or for each. `began` receives their tickets, by which `outputs` names them.

        Raises:
            RuntimeError: answers are in flight that `ended` has to return.
        """
        if self.unfinished:
            raise RuntimeError(
                f"{self.unfinished} answers are in flight; collect them with `ended`"
            )
        each = [sampling] * len(prompts) if isinstance(sampling, SamplingConfig) else sampling
        tickets = self.submit(prompts, each, version, seeds)
        began(tickets)
        finished: dict[int, Generation] = {}
        try:
            while self.unfinished:
                finished |= self.ended(self.unfinished, math.inf)
        except BaseException:
            self.abort()
            raise
        return [finished[ticket] for ticket in tickets]

    def sleep(self) -> None:  # noqa: B027
        """Leaves the device to the learner until `use` is called again; weights may change."""

    def reset_prefix_cache(self) -> None:  # noqa: B027
        """Empties the prefix cache: later samples are the same to the last bit, regardless of what
        was generated before."""

    def use_cache_scope(self, scope: str = "") -> None:  # noqa: B027
        """Uses only the cached prompts of this scope from now on. Those of the empty scope are kept
        separately, so that other scopes do not affect it; those of any other are discarded."""

    def row_seeds(self, count: int) -> list[int]:
        """Returns the seeds of `count` answers that have none of their own."""
        first, self.request_count = self.request_count, self.request_count + count
        return [row_seed(self.seed, "place", index) for index in range(first, self.request_count)]

    def close(self) -> None:  # noqa: B027
        """Ends all processes that the generator started."""


def make_generator(setup: Setup) -> Generator:
    """Returns the generator that the settings of the weights' owner name.

    Raises:
        GeneratorError: it could not start.
    """
    name = setup.agents[0].generator.name
    return import_module(GENERATORS[name]).make(setup)
