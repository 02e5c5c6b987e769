"""One agent: its policy, generator and learner in one process, one thread per core it is given.

Invariant: the generator always samples from the learner's current weights, except while
`starting_weights` is asked for, and every answer carries the version that wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from engine.config import AgentConfig, RunConfig, SamplingConfig
from engine.policy.exchange import Answer, Generation, Request
from engine.policy.generators.torch_generator import TorchGenerator
from engine.policy.learner import Learner
from engine.policy.load import load_policy
from engine.policy.prompts import Message, refinement_prompts, root_prompt
from engine.policy.rows import TrainingRow, UpdateStats
from engine.problems.extraction import extract_program

STATE_FILE = "trainer_state.pt"


class Agent:
    """Lives in a Ray actor, or alone in a test."""

    def __init__(self, config: AgentConfig, run: RunConfig, seed: int):
        torch.set_num_threads(run.compute.threads_per_agent)
        torch.manual_seed(seed)
        self.config = config
        device = _device(run.compute.device)
        self.policy = load_policy(config.model, device, run.compute.dtype)
        self.learner = Learner(
            self.policy.model, self.policy.pad_id, config, run.loss, run.training
        )
        self.generator = TorchGenerator(
            self.policy.model, self.policy.end_ids, self.policy.pad_id, seed
        )
        self._run = run
        self._starting: torch.nn.Module | None = self.learner.reference
        self._boundary = self.generator.random.get_state()

    def parameters(self) -> int:
        """Number of weights."""
        return sum(weight.numel() for weight in self.policy.model.parameters())

    def answer(
        self,
        requests: Sequence[Request],
        temperature: float | None = None,
        starting_weights: bool = False,
    ) -> list[Answer]:
        """One answer per request, in order. `temperature` overrides the agent's own."""
        sampling = self.config.sampling
        if temperature is not None:
            sampling = sampling.model_copy(update={"temperature": temperature})
        prompts = [self._prompt_ids(request, sampling) for request in requests]
        self.generator.model = self._starting_model() if starting_weights else self.policy.model
        version = 0 if starting_weights else self.learner.version
        generations = self.generator.generate(prompts, sampling, version)
        texts = [self._text(generation) for generation in generations]
        return [Answer(g, extract_program(t), t) for g, t in zip(generations, texts, strict=True)]

    def learn(self, rows: Sequence[TrainingRow], progress: float) -> UpdateStats:
        """Update the weights from the agent's own nodes."""
        stats = self.learner.update(rows, progress)
        self._boundary = self.generator.random.get_state()
        return stats

    def save_model(self, directory: Path) -> None:
        """Weights (safetensors), tokenizer and config in Hugging Face layout."""
        directory.mkdir(parents=True, exist_ok=True)
        self.policy.model.save_pretrained(directory)
        self.policy.tokenizer.save_pretrained(directory)

    def save(self, directory: Path) -> None:
        """All that a resume needs, as of the last finished step."""
        self.save_model(directory)
        state: dict[str, Any] = {"learner": self.learner.state(), "random": self._boundary}
        torch.save(state, directory / STATE_FILE)

    def restore(self, directory: Path) -> None:
        """Go on from `save`; the reference stays the starting policy."""
        saved = load_policy(str(directory), str(self.policy.model.device), self._run.compute.dtype)
        self.policy.model.load_state_dict(saved.model.state_dict())
        # weights_only: plain tensors and numbers, nothing that could run code.
        state = torch.load(directory / STATE_FILE, weights_only=True)
        self.learner.load_state(state["learner"])
        self.generator.random.set_state(state["random"].cpu())
        self._boundary = state["random"]

    def _prompt_ids(self, request: Request, sampling: SamplingConfig) -> list[int]:
        candidates = (
            refinement_prompts(request.problem, request.feedback, self.config.role)
            if request.feedback
            else [root_prompt(request.problem, self.config.role)]
        )
        ids: list[int] = []
        for messages in candidates:
            ids = self._encode(messages)
            if len(ids) <= sampling.max_prompt_tokens:
                return ids
        raise ValueError(
            f"problem {request.problem.id}: its statement takes {len(ids)} tokens, more than "
            f"agents.{self.config.name}.sampling.max_prompt_tokens = "
            f"{sampling.max_prompt_tokens}; raise it"
        )

    def _encode(self, messages: list[Message]) -> list[int]:
        return self.policy.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False
        )

    def _text(self, generation: Generation) -> str:
        return self.policy.tokenizer.decode(generation.output_ids, skip_special_tokens=True)

    def _starting_model(self) -> torch.nn.Module:
        if self._starting is None:
            if not self.learner.version:
                return self.policy.model
            policy = load_policy(
                self.config.model, str(self.policy.model.device), self._run.compute.dtype
            )
            self._starting = policy.model
        return self._starting


def _device(wanted: str) -> str:
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return wanted
