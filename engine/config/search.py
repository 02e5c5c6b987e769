"""Settings of the search tree."""

from __future__ import annotations

from pydantic import Field, model_validator

from engine.config import thompson
from engine.config.base import Whole
from engine.config.method_settings import MethodSettings
from engine.config.thompson import AgentChoice, NodeChoice, Posterior, SelectionOrder


class SearchConfig(MethodSettings):
    SECTION = "search"

    strategy: str = "thompson"
    """How a tree grows: a name in `engine.search.strategies.STRATEGIES`."""
    allocator: str = "uniform"
    """How a step's nodes are divided among its trees: a name in
    `engine.search.allocators.ALLOCATORS`. Searches and evaluations have one size of tree."""
    nodes_per_tree: int = Field(8, ge=1, le=5000)
    """Budget of one tree: its number of nodes without the root."""
    nodes_in_flight: int = Field(1, ge=1, le=256)
    """Maximum number of a tree's nodes in flight; 1 is the sequential algorithm."""
    posterior: thompson.PosteriorFamily = Posterior.BETA
    selection_order: thompson.Order = SelectionOrder.AGENT_FIRST
    agent_choice: thompson.ChoiceOfAgent = AgentChoice.THOMPSON
    node_choice: thompson.ChoiceOfNode = NodeChoice.THOMPSON
    tokens_per_tree: Whole | None = Field(None, ge=1)
    """If set, a tree opens no more nodes once its answers have this many tokens."""
    seconds_per_tree: float | None = Field(None, gt=0)
    """If set, a tree opens no more nodes this many seconds after its first; its shape then depends
    on the load of the machine."""
    stop_when_solved: bool = False
    """A tree opens no more nodes once one passes all public tests; for inference, not training."""
    error_feedback: bool = True
    """Refinement prompts include the results of the parent's program on the public tests."""
    error_traceback: bool = False
    """Of public tests that raised, refinement prompts also show the last two frames of the
    traceback that are the program's, with their code, as MARS²-T+ does."""
    refinement_statement: bool = True
    """Refinement prompts begin with the problem's statement. Without it they hold the parent's
    program and its results alone, as those of the published code of MARS² do; where the parent has
    no program, the statement is sent anew."""
    turns_per_episode: int = Field(16, ge=1, le=1000)
    """Most turns of one episode, where the environment has episodes of several turns; one that is
    longer ends as `truncated`, with its worth by then. Of programs every answer is scored."""
    rho: thompson.Rho = None
    max_depth: int | None = Field(None, ge=1, le=5000)
    """If set, nodes at this depth are not refined; 1 is a flat group of independent answers. Trees
    at evaluation have no such limit."""

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> SearchConfig:
        if self.error_traceback and not self.error_feedback:
            raise ValueError(
                "error_traceback = true has no effect with error_feedback = false; leave it out, "
                "or set error_feedback to true"
            )
        if not self.refinement_statement and not self.error_feedback:
            raise ValueError(
                "refinement_statement = false with error_feedback = false: a repair would see "
                "neither the statement nor what its program got wrong; set one of them to true"
            )
        thompson.check_rho(self.rho, self.posterior)
        return self

    @model_validator(mode="after")
    def _flight_fits_budget(self) -> SearchConfig:
        if self.nodes_in_flight > self.nodes_per_tree:
            raise ValueError(
                f"nodes_in_flight = {self.nodes_in_flight} is more than "
                f"nodes_per_tree = {self.nodes_per_tree}; lower it"
            )
        return self
