"""The policies of one process.

Invariant: policies with adapters over one model, and frozen ones that are that model, share it;
any other policy has a process of its own.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from engine.config.agents import AgentConfig
from engine.config.compute import ComputeConfig
from engine.config.schema import RunConfig
from engine.environments.opening import open_environment
from engine.events.drafts import DraftWriter
from engine.policy.learner.objective import DEFAULT, Objective
from engine.policy.learner.rows import TrainingRow, UpdateStats
from engine.policy.models.load import LoadedModel, load_policy
from engine.policy.models.weights import FullWeights, Weights
from engine.policy.policy import Policy
from engine.policy.types import Answer, AnswerCall, Generation, Request, Size


class PolicyHost:
    """The policies of one Ray actor, or of a test. Calls name agents or owners of weights.

    `groups` are the agents of each policy, the owner first; all of them start from one `model`.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[AgentConfig]],
        run: RunConfig,
        seeds: Sequence[int],
        generator_index: int | None = None,
        run_dir: Path | None = None,
        clock: str | None = None,
    ):
        """With `generator_index` these policies only generate, as the generator of that index, with
        weights of a learner elsewhere. With `run_dir` they write drafts there. `clock` is
        the local time that chat templates write (`engine.run.clock`)."""
        torch.set_num_threads(run.compute.threads_per_agent)
        torch.use_deterministic_algorithms(run.compute.deterministic)
        torch.manual_seed(seeds[0])
        self.run = run
        self.run_dir = run_dir
        self.generator_index = generator_index
        self.policies: dict[str, Policy] = {}
        loaded = load_policy(groups[0][0].model, _device(run.compute), run.compute.dtype)
        environment = open_environment(run)
        for agents, weights, seed in zip(
            groups, self._weights(groups, loaded, seeds), seeds, strict=True
        ):
            # Every policy sets a chat template of its own.
            shared = len(groups) > 1
            tokenizer = copy.deepcopy(loaded.tokenizer) if shared else loaded.tokenizer
            own = replace(loaded, tokenizer=tokenizer)
            learns, drafts = generator_index is None, self._drafts(agents[0].name, run_dir)
            policy = Policy(agents, run, own, weights, seed, environment, learns, drafts, clock)
            self.policies[agents[0].name] = policy

    def _drafts(self, owner: str, run_dir: Path | None) -> DraftWriter | None:
        number = self.generator_index
        name = owner if number is None else f"{owner}-{number}"
        return DraftWriter(run_dir, name) if run_dir else None

    def sizes(self) -> dict[str, Size]:
        """Returns the number of weights by agent."""
        return {name: policy.size() for policy in self.policies.values() for name in policy.agents}

    def too_long(self, statements: Sequence[str]) -> dict[int, str]:
        """Returns, by index, why a statement exceeds the limit of an agent (see `Renderer`)."""
        reasons: dict[int, str] = {}
        for policy in self.policies.values():
            reasons = policy.renderer.too_long(statements) | reasons
        return reasons

    def answer(self, call: AnswerCall) -> dict[str, list[Answer]]:
        """Returns one answer per request, in order, by agent."""
        requests = call.requests
        answers: dict[str, list[Answer]] = {}
        for policy in self.policies.values():
            if mine := {name: requests[name] for name in policy.agents if name in requests}:
                answers |= policy.answer(call.of(mine))
        return answers

    def write(
        self,
        requests: Mapping[int, tuple[str, Request]],
        seconds: float,
        urgent: Collection[int] = (),
        temperature: float | None = None,
    ) -> dict[int, Answer]:
        """Submits requests, which are (agent, request) by number, and generates as `Policy.write`
        does, each policy for an equal share of `seconds`. Returns the finished answers by number.
        """
        by_owner: dict[str, dict[int, tuple[str, Request]]] = {owner: {} for owner in self.policies}
        owners = {name: owner for owner, policy in self.policies.items() for name in policy.agents}
        for number, (name, request) in requests.items():
            by_owner[owners[name]][number] = (name, request)
        ended: dict[int, Answer] = {}
        for owner, policy in self.policies.items():
            share = seconds / len(self.policies)
            ended |= policy.write(by_owner[owner], share, urgent, temperature)
        return ended

    def encode(self, agent: str, shown: Sequence[tuple[Request, str]]) -> list[Generation | None]:
        """Returns programs as answers of an agent (`Policy.encode`)."""
        (policy,) = (one for one in self.policies.values() if agent in one.agents)
        return policy.encode(agent, shown)

    def entropies(self, owner: str, rows: Sequence[TrainingRow]) -> list[np.ndarray]:
        """Returns the entropies of one policy at the output tokens of rows (`Policy.entropies`)."""
        return self.policies[owner].entropies(rows)

    def learn(
        self,
        owner: str,
        rows: Sequence[TrainingRow],
        progress: float,
        objective: Objective = DEFAULT,
    ) -> UpdateStats:
        """Updates one policy's weights from the nodes of its agents, and what they are shown."""
        return self.policies[owner].learn(rows, progress, objective)

    def give_weights(self, owner: str) -> tuple[int, list[Any]]:
        """Returns version and trained weights of a policy, for a generator's `take_weights`."""
        return self.policies[owner].give_weights()

    def take_weights(self, owner: str, given: tuple[int, list[Any]]) -> None:
        """Generates with a learner's weights from now on."""
        self.policies[owner].take_weights(*given)

    def end_step(self) -> None:
        """Records the random state, from which an interrupted step is repeated."""
        for policy in self.policies.values():
            policy.end_step()

    def close(self) -> None:
        """Ends the processes of the policies' generators."""
        for policy in self.policies.values():
            policy.close()

    def save_model(self, owner: str, directory: Path) -> None:
        """Writes weights (safetensors), tokenizer and config in Hugging Face layout."""
        self.policies[owner].save_model(directory)

    def save(self, directory: Path) -> None:
        """Writes all that a resume needs, under `directory/OWNER`."""
        for owner, policy in self.policies.items():
            policy.save(self._folder(directory, owner))

    def restore(self, directory: Path, as_fork: bool = False) -> list[str]:
        """Restores what `save` wrote; returns how the platform differs from the one that saved."""
        differences = [
            policy.restore(self._folder(directory, owner), as_fork)
            for owner, policy in self.policies.items()
        ]
        return [line for lines in differences for line in lines]

    def _folder(self, directory: Path, owner: str) -> Path:
        """Returns the folder of a policy's files in a checkpoint; a generator keeps only its
        random state."""
        folder = directory / owner
        return (
            folder if self.generator_index is None else folder / f"generator-{self.generator_index}"
        )

    def _weights(
        self, groups: Sequence[Sequence[AgentConfig]], loaded: LoadedModel, seeds: Sequence[int]
    ) -> list[Weights]:
        owners = [agents[0] for agents in groups]
        if not any(agent.lora for agent in owners):
            return [self._full(agent, loaded) for agent in owners]
        from engine.policy.models.adapters import (  # an extra
            AdapterBase,
            AdapterWeights,
            BaseWeights,
        )

        base = AdapterBase(owners[0].model, loaded.model)
        weights: list[Weights] = []
        for agent, seed in zip(owners, seeds, strict=True):
            torch.manual_seed(seed)  # an adapter's start depends on no other agent
            own = AdapterWeights(base, agent, agent.lora) if agent.lora else BaseWeights(base)
            weights.append(own)
        return weights

    def _full(self, agent: AgentConfig, loaded: LoadedModel) -> FullWeights:
        def reload(directory: Path | None) -> PreTrainedModel:
            where = str(directory) if directory else agent.model
            device = str(loaded.model.device)
            return load_policy(where, device, self.run.compute.dtype).model

        # Several ranks hold the reference themselves, as they do the optimizer.
        reference = (
            self.run.loss.reads_reference
            and agent.learner_ranks == 1
            and self.generator_index is None
        )
        return FullWeights(loaded.model, reload, trainable=agent.trainable, reference=reference)


def _device(compute: ComputeConfig) -> str:
    if compute.deterministic:
        return "cpu"
    if compute.device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return compute.device
