"""One policy and the agents that act by it: weights, generator and learner, one of each.

Mostly that is one agent. Homogeneous agents (docs/algorithm.md, section 1) are several: they have
the same weights and differ by role and sampling, and the policy learns from the nodes of all.

Invariants:
- The generator always samples from the current weights, except while `starting_weights` is asked
  for. An answer is written by one version, which it carries: before weights change, what is being
  written is finished.
- A frozen policy has no learner, no reference and no weights in a checkpoint.
- An answer's random numbers follow from the policy's seed and the name of its request, or its place
  among all that was asked, which a checkpoint holds; what names a stream of its own, as evaluation
  does, takes no place.
- What is known of prompts ends with the step and with the weights, so that a run that goes on from
  a checkpoint knows as much as one that was not cut.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from engine.config.agents import AgentConfig, SamplingConfig
from engine.config.schema import RunConfig
from engine.policy.generators import Setup, make_generator
from engine.policy.generators.counter_rng import row_seed
from engine.policy.learner.learner import Learner
from engine.policy.learner.rows import TrainingRow, UpdateStats
from engine.policy.models.load import LoadedModel, ModelError, chat_template
from engine.policy.models.weights import Weights
from engine.policy.prompts import Message, refinement_prompts, root_prompt
from engine.policy.token_texts import TokenTexts
from engine.policy.types import (
    SHOWN_CHARACTERS,
    SHOWN_TOKENS,
    Answer,
    Generation,
    Request,
    Size,
    Stream,
)
from engine.problems.extraction import extract_program

if TYPE_CHECKING:
    from engine.policy.learner.ranks import RankedLearner

STATE_FILE = "trainer_state.pt"
PART_OF_TURN, LEAST_OF_TURN = 0.25, 12
"""Of what is being written, the part that ends before it is told, and the fewest answers, unless
time is over: more at once, and what was told has waited for longer; less, and telling costs more
than writing."""


class Policy:
    """The agents of one policy, the owner of the weights first."""

    def __init__(
        self,
        agents: Sequence[AgentConfig],
        run: RunConfig,
        policy: LoadedModel,
        weights: Weights,
        seed: int,
        learns: bool = True,
    ):
        """Without `learns` it writes with the weights that a learner elsewhere gives it."""
        self.owner = agents[0]
        self.agents = {agent.name: agent for agent in agents}
        self.seed = seed
        self.policy = policy
        self._texts = TokenTexts(policy.tokenizer)
        self.weights = weights
        self.learner: Learner | RankedLearner | None = None
        self._given_version = 0
        if self.owner.trainable and learns:
            self.learner = self._learner(run)
        self.generator = make_generator(Setup(agents, run, policy, weights, seed))
        self._numbers: dict[int, int] = {}
        """Of the answers that are being written, by the generator's ticket."""
        self._ended: dict[int, Answer] = {}
        """Answers that are whole and nobody has taken yet, by their number."""
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

        What is asked of several agents is written as one batch. With `stream` the random numbers of
        this call follow from the policy's seed and that name.
        """
        self._finish_writing()
        asked = [(name, request) for name in requests for request in requests[name]]
        settings = {name: _sampling(self.agents[name], temperature) for name in requests}
        prompts, sampling, seeds = self._rows(asked, settings, stream)
        starting = starting_weights and self.version > 0
        self.generator.recall(_scope(starting, stream))
        with self.weights.starting() if starting else self.weights.current() as model:
            version = 0 if starting else self.version
            self.generator.use(model, version)
            written = self.generator.generate(prompts, sampling, version, seeds)
        answers: dict[str, list[Answer]] = {name: [] for name in requests}
        for (name, _), generation in zip(asked, written, strict=True):
            answers[name].append(self._answer(generation))
        return answers

    def write(
        self,
        requests: Mapping[int, tuple[str, Request]],
        seconds: float,
        urgent: Collection[int] = (),
    ) -> dict[int, Answer]:
        """Let these join what is being written, and write on until a good part of it has ended, or
        of what is `urgent`, or the time is over. Requests are (agent, request) by number; answers
        have those numbers."""
        if requests:
            asked = list(requests.values())
            settings = {name: self.agents[name].sampling for name, _ in asked}
            prompts, sampling, seeds = self._rows(asked, settings, None)
            with self.weights.current() as model:
                self.generator.use(model, self.version)
                tickets = self.generator.submit(prompts, sampling, self.version, seeds)
            self._numbers |= zip(tickets, requests, strict=True)
        wanted = len(self._numbers) + len(self._ended)
        least = max(int(PART_OF_TURN * wanted), min(LEAST_OF_TURN, wanted))
        hurry = {*self._numbers.values(), *self._ended}.intersection(urgent)
        soon = max(1, int(PART_OF_TURN * len(hurry)))
        until = time.monotonic() + seconds
        while len(self._ended) < least:
            if hurry and len(hurry & self._ended.keys()) >= soon:
                break
            more = 1 if hurry else least - len(self._ended)
            self._write_on(more, max(0.0, until - time.monotonic()))
            if not self._numbers or time.monotonic() >= until:
                break
        ended, self._ended = self._ended, {}
        return ended

    def learn(self, rows: Sequence[TrainingRow], progress: float) -> UpdateStats:
        """Update the weights from the nodes of its agents."""
        assert self.learner is not None
        self._finish_writing()
        self.generator.rest()
        return self.learner.update(rows, progress)

    def give_weights(self) -> tuple[int, list[np.ndarray]]:
        """Version and trained weights, each as its bytes: every type that torch knows passes."""
        trained = self.weights.trained()
        return self.version, [_bytes_of(weight).numpy() for weight in trained]

    @torch.no_grad()
    def take_weights(self, version: int, weights: Sequence[np.ndarray]) -> None:
        """Go on with what `give_weights` of the same policy gave."""
        self._finish_writing()
        for mine, given in zip(self.weights.trained(), weights, strict=True):
            # A copy: what comes from the object store may not be written to.
            theirs = torch.from_numpy(given.copy()).view(mine.dtype).view(mine.shape)
            mine.copy_(theirs)
        self._given_version = version
        self.generator.forget()  # what it knows of prompts is of the old weights

    def close(self) -> None:
        """End what the generator started."""
        self.generator.close()

    def end_step(self) -> None:
        """Remember the random numbers' state: a step that is cut off is done again from here."""
        self.generator.forget()
        self._boundary: dict[str, Any] = {
            "seed": self.seed,
            "asked": self.generator.asked,
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

    def restore(self, directory: Path, as_fork: bool = False) -> list[str]:
        """Go on from `save`; the reference stays the starting policy.

        `as_fork` takes weights and optimizer alone: random numbers and platform are this run's.
        Returns what of the platform differs from the one that saved, which may change the last
        bits of what follows.

        Raises:
            ValueError: it was saved on another kind of device, whose random numbers are others.
        """
        # weights_only: plain tensors and numbers, nothing that could run code.
        state = torch.load(directory / STATE_FILE, weights_only=True, map_location="cpu")
        if as_fork:
            self._take_learned(directory, state)
            return []
        before, now = state["platform"], self._platform()
        if before["device"] != now["device"]:
            raise ValueError(
                f"agents.{self.owner.name}: this run was trained on {before['device']} and cannot "
                f"go on on {now['device']}; set compute.device = {before['device']}"
            )
        self._take_learned(directory, state)
        # Last: nothing after it may draw.
        self.seed = self.generator.seed = state["random"]["seed"]
        self.generator.asked = state["random"]["asked"]
        torch.set_rng_state(state["random"]["torch"])
        if "cuda" in state["random"]:
            torch.cuda.set_rng_state(state["random"]["cuda"], self.weights.model.device)
        self.end_step()
        return [
            f"{self.owner.name}: {what} was {before[what]} and is {now[what]}"
            for what in now
            if before.get(what) != now[what]
        ]

    def _take_learned(self, directory: Path, state: dict[str, Any]) -> None:
        if self.learner:
            self.weights.load(directory)
            self.learner.load_state(state["learner"])

    def _learner(self, run: RunConfig) -> Learner | RankedLearner:
        if self.owner.learner_ranks == 1:
            return Learner(self.weights, self.policy.pad_id, self.owner, run.loss, run.training)
        from engine.policy.learner.ranks import RankedLearner  # needs a Ray that is there

        return RankedLearner(self.weights, self.policy.pad_id, self.owner, run, self.seed)

    def _platform(self) -> dict[str, Any]:
        """What decides the order and precision of sums, and with it the last bits of results."""
        return {
            "device": self.weights.model.device.type,
            "torch": str(torch.__version__),
            "cpu": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
        }

    def _finish_writing(self) -> None:
        """Before the weights change: an answer is of one version, from its first token on."""
        self._write_on(len(self._numbers), math.inf)

    def _write_on(self, least: int, seconds: float) -> None:
        if not self._numbers:
            return
        self.generator.recall()
        with self.weights.current() as model:
            self.generator.use(model, self.version)
            written = self.generator.ended(least, seconds)
        for ticket, generation in written.items():
            self._ended[self._numbers.pop(ticket)] = self._answer(generation)

    def _rows(
        self,
        asked: Sequence[tuple[str, Request]],
        settings: Mapping[str, SamplingConfig],
        stream: Stream | None,
    ) -> tuple[list[list[int]], list[SamplingConfig], list[int]]:
        """Prompts, settings and seeds of what was asked of agents."""
        sampling = [settings[name] for name, _ in asked]
        prompts = self._prompts(asked, settings)
        seeds = [self._row_seed(request, n, stream) for n, (_, request) in enumerate(asked)]
        if stream is None:
            self.generator.asked += len(asked)
        return prompts, sampling, seeds

    def _prompts(
        self, asked: Sequence[tuple[str, Request]], settings: Mapping[str, SamplingConfig]
    ) -> list[list[int]]:
        """The ids of every prompt; what siblings read alike is encoded once."""
        known: dict[tuple[str, int], list[int]] = {}
        prompts = []
        for name, request in asked:
            place = name, id(request.feedback or request.problem)
            if place not in known:
                known[place] = self._prompt_ids(self.agents[name], request, settings[name])
            prompts.append(known[place])
        return prompts

    def _row_seed(self, request: Request, place: int, stream: Stream | None) -> int:
        if stream is None:
            place += self.generator.asked
        return row_seed(self.seed, *(stream or ()), *(request.name or ("place", place)))

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
        prompt = self._texts.whole(generation.prompt_ids)[-SHOWN_CHARACTERS:]
        tokens = self._texts.each(generation.output_ids[:SHOWN_TOKENS])
        return Answer(generation, extract_program(text), text, prompt=prompt, tokens=tokens)

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


def _sampling(agent: AgentConfig, temperature: float | None) -> SamplingConfig:
    if temperature is None:
        return agent.sampling
    return agent.sampling.model_copy(update={"temperature": temperature})


def _scope(starting: bool, stream: Stream | None) -> str:
    """Which prompts are known: of training, or of the part of an evaluation that a call is of; the
    last word of a stream's name is that of the call."""
    return "" if stream is None and not starting else repr((starting, (stream or ())[:-1]))
