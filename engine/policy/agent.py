"""One policy and the agents that act by it: weights, generator and learner, one of each.

Mostly that is one agent. Homogeneous agents (mars2.md, section 1) are several: they have the same
weights and differ by role and sampling, and the policy learns from the nodes of all of them.

Invariants:
- The generator always samples from the current weights, except while `starting_weights` is asked
  for, and every answer carries the version that wrote it.
- A frozen policy has no learner, no reference and no weights in a checkpoint.
- Training draws from one stream of random numbers, which a checkpoint holds; what names a stream
  of its own, as evaluation does, leaves that one alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.config import AgentConfig, RunConfig, SamplingConfig
from engine.policy.exchange import Answer, Generation, Request, Size, Stream
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
        learns: bool = True,
    ):
        """Without `learns` it writes with the weights that a learner elsewhere gives it."""
        self.owner = agents[0]
        self.agents = {agent.name: agent for agent in agents}
        self.seed = seed
        self.policy = policy
        self.weights = weights
        self.learner: Learner | None = None
        self._given_version = 0
        if self.owner.trainable and learns:
            self.learner = Learner(weights, policy.pad_id, self.owner, run.loss, run.training)
        self.generator = TorchGenerator(weights.model, policy.end_ids, policy.pad_id, seed)
        self._random = self.generator.random
        self.end_step()
        if self.owner.chat_template is not None:
            policy.tokenizer.chat_template = chat_template(self.owner)
        for agent in agents:
            self._check_template(agent)

    @property
    def version(self) -> int:
        """Updates behind the weights; a frozen policy stays at 0."""
        return self.learner.version if self.learner else self._given_version

    def size(self) -> Size:
        """Number of weights, and of those that learn."""
        trained = sum(weight.numel() for weight in self.weights.trained())
        return Size(self.weights.parameters(), trained)

    def answer(
        self,
        requests: Mapping[str, Sequence[Request]],
        temperature: float | None = None,
        starting_weights: bool = False,
        stream: Stream | None = None,
    ) -> dict[str, list[Answer]]:
        """One answer per request, in order, by agent. `temperature` overrides the agents' own.

        What is asked of several agents that sample alike is written as one batch. With `stream`
        the random numbers of this call follow from the policy's seed and that name.
        """
        self.generator.random = self._random if stream is None else self._of_stream(stream)
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
        return self.learner.update(rows, progress)

    def give_weights(self) -> tuple[int, list[np.ndarray]]:
        """Version and trained weights, each as its bytes: every type that torch knows passes."""
        trained = self.weights.trained()
        return self.version, [_bytes_of(weight).numpy() for weight in trained]

    @torch.no_grad()
    def take_weights(self, version: int, weights: Sequence[np.ndarray]) -> None:
        """Go on with what `give_weights` of the same policy gave."""
        for mine, given in zip(self.weights.trained(), weights, strict=True):
            # A copy: what comes from the object store may not be written to.
            theirs = torch.from_numpy(given.copy()).view(mine.dtype).view(mine.shape)
            mine.copy_(theirs)
        self._given_version = version

    def end_step(self) -> None:
        """Remember the random numbers' state: a step that is cut off is done again from here."""
        self._boundary: dict[str, Any] = {
            "generator": self._random.get_state(),
            "torch": torch.get_rng_state(),  # a model may hold dropout
        }
        if self.weights.model.device.type == "cuda":
            self._boundary["cuda"] = torch.cuda.get_rng_state(self.weights.model.device)

    def save_model(self, directory: Path) -> None:
        """Weights (safetensors), tokenizer and config in Hugging Face layout."""
        directory.mkdir(parents=True, exist_ok=True)
        self.weights.save_model(directory)
        self.policy.tokenizer.save_pretrained(directory)

    def save(self, directory: Path) -> None:
        """All that a resume needs, as of the last finished step."""
        directory.mkdir(parents=True, exist_ok=True)
        state: dict[str, Any] = {"random": self._boundary, "platform": self._platform()}
        if self.learner:
            self.weights.save(directory)
            self.policy.tokenizer.save_pretrained(directory)
            state["learner"] = self.learner.state()
        torch.save(state, directory / STATE_FILE)

    def restore(self, directory: Path) -> list[str]:
        """Go on from `save`; the reference stays the starting policy.

        Returns what of the platform differs from the one that saved, which may change the last
        bits of what follows.

        Raises:
            ValueError: it was saved on another kind of device, whose random numbers are others.
        """
        # weights_only: plain tensors and numbers, nothing that could run code.
        state = torch.load(directory / STATE_FILE, weights_only=True, map_location="cpu")
        before, now = state["platform"], self._platform()
        if before["device"] != now["device"]:
            raise ValueError(
                f"agents.{self.owner.name}: this run was trained on {before['device']} and cannot "
                f"go on on {now['device']}; set compute.device = {before['device']}"
            )
        if self.learner:
            self.weights.load(directory)
            self.learner.load_state(state["learner"])
        # Last: nothing after it may draw.
        self._random.set_state(state["random"]["generator"])
        torch.set_rng_state(state["random"]["torch"])
        if "cuda" in state["random"]:
            torch.cuda.set_rng_state(state["random"]["cuda"], self.weights.model.device)
        self.end_step()
        return [
            f"{self.owner.name}: {what} was {before[what]} and is {now[what]}"
            for what in now
            if before.get(what) != now[what]
        ]

    def _platform(self) -> dict[str, Any]:
        """What decides the order and precision of sums, and with it the last bits of results."""
        return {
            "device": self.weights.model.device.type,
            "torch": str(torch.__version__),
            "cpu": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
        }

    def _of_stream(self, stream: Stream) -> torch.Generator:
        digest = hashlib.sha256(repr((self.seed, *stream)).encode()).digest()
        seed = int.from_bytes(digest[:8], "big")
        return torch.Generator(device=self.weights.model.device).manual_seed(seed)

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
        return Answer(generation, extract_program(text), text)

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


def _bytes_of(weight: torch.Tensor) -> torch.Tensor:
    return weight.detach().cpu().contiguous().view(-1).view(torch.uint8)
