"""One agent: its policy, generator and learner in one process, one thread per core it is given.

Invariant: the generator always samples from the learner's current weights, except while
`starting_weights` is asked for, and every answer carries the version that wrote it. Training
draws from one stream of random numbers, which a checkpoint holds; what names a stream of its own,
as evaluation does, leaves that one alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from engine.config import AgentConfig, ComputeConfig, RunConfig, SamplingConfig
from engine.policy.exchange import Answer, Generation, Request, Stream
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
        torch.use_deterministic_algorithms(run.compute.deterministic)
        torch.manual_seed(seed)
        self.config = config
        self.seed = seed
        device = _device(run.compute)
        self.policy = load_policy(config.model, device, run.compute.dtype)
        self.learner = Learner(
            self.policy.model, self.policy.pad_id, config, run.loss, run.training
        )
        self.generator = TorchGenerator(
            self.policy.model, self.policy.end_ids, self.policy.pad_id, seed
        )
        self._run = run
        self._starting: torch.nn.Module | None = self.learner.reference
        self._random = self.generator.random
        self.end_step()

    def parameters(self) -> int:
        """Number of weights."""
        return sum(weight.numel() for weight in self.policy.model.parameters())

    def answer(
        self,
        requests: Sequence[Request],
        temperature: float | None = None,
        starting_weights: bool = False,
        stream: Stream | None = None,
    ) -> list[Answer]:
        """One answer per request, in order. `temperature` overrides the agent's own.

        With `stream` the random numbers of this call follow from the agent's seed and that name.
        """
        sampling = self.config.sampling
        if temperature is not None:
            sampling = sampling.model_copy(update={"temperature": temperature})
        prompts = [self._prompt_ids(request, sampling) for request in requests]
        self.generator.model = self._starting_model() if starting_weights else self.policy.model
        self.generator.random = self._random if stream is None else self._of_stream(stream)
        version = 0 if starting_weights else self.learner.version
        generations = self.generator.generate(prompts, sampling, version)
        texts = [self._text(generation) for generation in generations]
        return [Answer(g, extract_program(t), t) for g, t in zip(generations, texts, strict=True)]

    def learn(self, rows: Sequence[TrainingRow], progress: float) -> UpdateStats:
        """Update the weights from the agent's own nodes."""
        return self.learner.update(rows, progress)

    def end_step(self) -> None:
        """Remember the random numbers' state: a step that is cut off is done again from here."""
        self._boundary: dict[str, Any] = {
            "generator": self._random.get_state(),
            "torch": torch.get_rng_state(),  # a model may hold dropout
        }
        if self.policy.model.device.type == "cuda":
            self._boundary["cuda"] = torch.cuda.get_rng_state(self.policy.model.device)

    def save_model(self, directory: Path) -> None:
        """Weights (safetensors), tokenizer and config in Hugging Face layout."""
        directory.mkdir(parents=True, exist_ok=True)
        self.policy.model.save_pretrained(directory)
        self.policy.tokenizer.save_pretrained(directory)

    def save(self, directory: Path) -> None:
        """All that a resume needs, as of the last finished step."""
        self.save_model(directory)
        state: dict[str, Any] = {
            "learner": self.learner.state(),
            "random": self._boundary,
            "platform": self._platform(),
        }
        torch.save(state, directory / STATE_FILE)

    def restore(self, directory: Path) -> list[str]:
        """Go on from `save`; the reference stays the starting policy.

        Returns what of the platform differs from the one that saved, which may change the last
        bits of what follows.

        Raises:
            ValueError: it was saved on another kind of device, whose random numbers are others.
        """
        saved = load_policy(str(directory), str(self.policy.model.device), self._run.compute.dtype)
        self.policy.model.load_state_dict(saved.model.state_dict())
        # weights_only: plain tensors and numbers, nothing that could run code.
        state = torch.load(directory / STATE_FILE, weights_only=True, map_location="cpu")
        before, now = state["platform"], self._platform()
        if before["device"] != now["device"]:
            raise ValueError(
                f"agents.{self.config.name}: this run was trained on {before['device']} and cannot "
                f"go on on {now['device']}; set compute.device = {before['device']}"
            )
        self.learner.load_state(state["learner"])
        # Last: nothing after it may draw.
        self._random.set_state(state["random"]["generator"])
        torch.set_rng_state(state["random"]["torch"])
        if "cuda" in state["random"]:
            torch.cuda.set_rng_state(state["random"]["cuda"], self.policy.model.device)
        self.end_step()
        return [
            f"{self.config.name}: {what} was {before[what]} and is {now[what]}"
            for what in now
            if before.get(what) != now[what]
        ]

    def _platform(self) -> dict[str, Any]:
        """What decides the order and precision of sums, and with it the last bits of results."""
        return {
            "device": self.policy.model.device.type,
            "torch": str(torch.__version__),
            "cpu": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
        }

    def _of_stream(self, stream: Stream) -> torch.Generator:
        digest = hashlib.sha256(repr((self.seed, *stream)).encode()).digest()
        seed = int.from_bytes(digest[:8], "big")
        return torch.Generator(device=self.policy.model.device).manual_seed(seed)

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


def _device(compute: ComputeConfig) -> str:
    if compute.deterministic:
        return "cpu"
    if compute.device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return compute.device
