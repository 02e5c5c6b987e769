"""One policy and the agents that act by it: weights, generator and learner, one of each.

Mostly that is one agent. Homogeneous agents (mars2.md, section 1) are several: they have the same
weights and differ by role and sampling, and the policy learns from the nodes of all of them.

Invariants:
- The generator always samples from the current weights, except while `starting_weights` is asked
  for, and every answer carries the version that wrote it.
- A frozen policy has no learner, no reference and no weights in a checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from engine.config import AgentConfig, RunConfig, SamplingConfig
from engine.policy.exchange import Answer, Generation, Request, Size
from engine.policy.generators.torch_generator import TorchGenerator
from engine.policy.learner import Learner
from engine.policy.load import ModelError, Policy, chat_template
from engine.policy.prompts import Message, refinement_prompts, root_prompt
from engine.policy.rows import TrainingRow, UpdateStats
from engine.policy.weights import Weights
from engine.problems.extraction import extract_program

STATE_FILE = "trainer_state.pt"


class PolicyGroup:
    """The agents of one policy, the owner of the weights first."""

    def __init__(
        self,
        agents: Sequence[AgentConfig],
        run: RunConfig,
        policy: Policy,
        weights: Weights,
        seed: int,
    ):
        self.owner = agents[0]
        self.agents = {agent.name: agent for agent in agents}
        self.policy = policy
        self.weights = weights
        self.learner: Learner | None = None
        if self.owner.trainable:
            self.learner = Learner(weights, policy.pad_id, self.owner, run.loss, run.training)
        self.generator = TorchGenerator(weights.model, policy.end_ids, policy.pad_id, seed)
        self._boundary = self.generator.random.get_state()
        if self.owner.chat_template is not None:
            policy.tokenizer.chat_template = chat_template(self.owner)
        for agent in agents:
            self._check_template(agent)

    @property
    def version(self) -> int:
        """Updates so far; a frozen policy stays at 0."""
        return self.learner.version if self.learner else 0

    def size(self) -> Size:
        """Number of weights, and of those that learn."""
        trained = sum(weight.numel() for weight in self.weights.trained())
        return Size(self.weights.parameters(), trained)

    def answer(
        self,
        requests: Mapping[str, Sequence[Request]],
        temperature: float | None = None,
        starting_weights: bool = False,
    ) -> dict[str, list[Answer]]:
        """One answer per request, in order, by agent. `temperature` overrides the agents' own.

        What is asked of several agents that sample alike is written as one batch.
        """
        answers: dict[str, list[Answer]] = {name: [] for name in requests}
        starting = starting_weights and self.version > 0
        with self.weights.starting() if starting else self.weights.current() as model:
            self.generator.model = model
            for sampling, asked in self._batches(requests, temperature):
                prompts = [
                    self._prompt_ids(self.agents[name], request, sampling)
                    for name in asked
                    for request in requests[name]
                ]
                version = 0 if starting else self.version
                written = iter(self.generator.generate(prompts, sampling, version))
                for name in asked:
                    answers[name] = [self._answer(next(written)) for _ in requests[name]]
        return answers

    def learn(self, rows: Sequence[TrainingRow], progress: float) -> UpdateStats:
        """Update the weights from the nodes of its agents."""
        assert self.learner is not None
        stats = self.learner.update(rows, progress)
        self._boundary = self.generator.random.get_state()
        return stats

    def save_model(self, directory: Path) -> None:
        """Weights (safetensors), tokenizer and config in Hugging Face layout."""
        directory.mkdir(parents=True, exist_ok=True)
        self.weights.save_model(directory)
        self.policy.tokenizer.save_pretrained(directory)

    def save(self, directory: Path) -> None:
        """All that a resume needs, as of the last finished step."""
        directory.mkdir(parents=True, exist_ok=True)
        state: dict[str, Any] = {"random": self._boundary}
        if self.learner:
            self.weights.save(directory)
            self.policy.tokenizer.save_pretrained(directory)
            state["learner"] = self.learner.state()
        torch.save(state, directory / STATE_FILE)

    def restore(self, directory: Path) -> None:
        """Go on from `save`; the reference stays the starting policy."""
        # weights_only: plain tensors and numbers, nothing that could run code.
        state = torch.load(directory / STATE_FILE, weights_only=True)
        if self.learner:
            self.weights.load(directory)
            self.learner.load_state(state["learner"])
        self.generator.random.set_state(state["random"].cpu())
        self._boundary = state["random"]

    def _batches(
        self, requests: Mapping[str, Sequence[Request]], temperature: float | None
    ) -> Iterator[tuple[SamplingConfig, list[str]]]:
        """The agents that are asked, those that sample alike together."""
        alike: dict[SamplingConfig, list[str]] = {}
        for name in requests:
            sampling = self.agents[name].sampling
            if temperature is not None:
                sampling = sampling.model_copy(update={"temperature": temperature})
            alike.setdefault(sampling, []).append(name)
        yield from alike.items()

    def _prompt_ids(
        self, agent: AgentConfig, request: Request, sampling: SamplingConfig
    ) -> list[int]:
        candidates = (
            refinement_prompts(request.problem, request.feedback, agent.role)
            if request.feedback
            else [root_prompt(request.problem, agent.role)]
        )
        ids: list[int] = []
        for messages in candidates:
            ids = self._encode(messages)
            if len(ids) <= sampling.max_prompt_tokens:
                return ids
        raise ValueError(
            f"problem {request.problem.id}: its statement takes {len(ids)} tokens, more than "
            f"agents.{agent.name}.sampling.max_prompt_tokens = "
            f"{sampling.max_prompt_tokens}; raise it"
        )

    def _encode(self, messages: list[Message]) -> list[int]:
        return self.policy.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False
        )

    def _answer(self, generation: Generation) -> Answer:
        text = self.policy.tokenizer.decode(generation.output_ids, skip_special_tokens=True)
        return Answer(generation, extract_program(text))

    def _check_template(self, agent: AgentConfig) -> None:
        """Some templates take no system message, and a role is one."""
        role = [{"role": "system", "content": agent.role}] if agent.role else []
        try:
            self._encode([*role, {"role": "user", "content": "?"}])
        except Exception as error:  # whatever the template raises
            where = "chat_template" if agent.chat_template else "model: its chat template"
            raise ModelError(
                f"agents.{agent.name}.{where} cannot write a prompt"
                f"{' with a role' if agent.role else ''}: {type(error).__name__}: {error}"
            ) from None
