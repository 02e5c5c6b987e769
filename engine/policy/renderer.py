"""Renderer of one policy: agents' requests as prompt ids, and generated ids as answers.

Invariant: ids that were sampled are never encoded again; text is made of them for people and for
the environment alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from engine.config.agents import AgentConfig, SamplingConfig
from engine.environments.types import Environment, Message, Written
from engine.policy.models.conversations import conversation_ids
from engine.policy.models.load import ModelError
from engine.policy.token_texts import TokenTexts
from engine.policy.types import SHOWN_CHARACTERS, SHOWN_TOKENS, Answer, Generation, Request
from engine.resources.model_files.templates import TemplateFailed


class Renderer:
    """Writes prompts by the chat template, and reads answers by the environment."""

    def __init__(
        self,
        agents: Sequence[AgentConfig],
        tokenizer: PreTrainedTokenizerBase,
        environment: Environment,
        clock: str | None = None,
    ):
        """`clock` is the time that chat templates write, in ISO format.

        Raises:
            ModelError: an agent's chat template fails, or writes the same prompt for everything.
        """
        self.agents = {agent.name: agent for agent in agents}
        self.tokenizer = tokenizer
        self._environment = environment
        self._clock = clock
        self._texts = TokenTexts(tokenizer)
        self._reads_tokens = any(map(environment.reads_token, tokenizer.all_special_tokens))
        for agent in agents:
            self._check_template(agent)

    def prompts(
        self, pairs: Sequence[tuple[str, Request]], settings: Mapping[str, SamplingConfig]
    ) -> list[list[int]]:
        """Returns the ids of the prompt of every (agent, request); one that siblings share is
        encoded once. `settings` are those of sampling, by agent.

        Raises:
            ValueError: even the shortest prompt of a request exceeds its agent's limit.
        """
        encoded: dict[tuple[str, int, int], list[int]] = {}
        prompts = []
        for name, request in pairs:
            key = name, id(request.task), id(request.observation)
            if key not in encoded:
                encoded[key] = self._prompt_ids(self.agents[name], request, settings[name])
            prompts.append(encoded[key])
        return prompts

    def too_long(self, statements: Sequence[str]) -> dict[int, str]:
        """Returns, by index, why the prompt of a statement alone exceeds an agent's limit.

        Statements in ASCII have at most as many tokens as characters, and are not encoded if they
        fit even so.
        """
        reasons: dict[int, str] = {}
        for agent in self.agents.values():
            limit = agent.sampling.max_prompt_tokens
            around = len(self._encode(self._environment.opening("", agent.role), agent))
            for index, text in enumerate(statements):
                if index in reasons or (text.isascii() and around + len(text) <= limit):
                    continue
                opening = self._environment.opening(text, agent.role)
                count = len(self._encode(opening, agent))
                if count > limit:
                    reasons[index] = (
                        f"takes {count:,} tokens, more than agents.{agent.name}.sampling."
                        f"max_prompt_tokens = {limit:,}; a new run with a larger limit keeps it"
                    )
        return reasons

    def answer(self, generation: Generation, task: Any) -> Answer:
        """Returns a generation as the environment reads it for `task`."""
        tokenizer: Any = self.tokenizer
        text: str = tokenizer.decode(generation.output_ids, skip_special_tokens=True)
        prompt = self._texts.whole(generation.prompt_ids)[-SHOWN_CHARACTERS:]
        tokens = self._texts.each(generation.output_ids[:SHOWN_TOKENS])
        said = self._texts.whole(generation.output_ids) if self._reads_tokens else text
        action = self._environment.read(task, Written(said, prompt, generation.is_cut))
        return Answer(
            generation, action.text, text, prompt=prompt, tokens=tokens, no_program=action.fault
        )

    def _prompt_ids(
        self, agent: AgentConfig, request: Request, sampling: SamplingConfig
    ) -> list[int]:
        ids: list[int] = []
        for messages in self._environment.messages(request, agent.role):
            ids = self._encode(messages, agent)
            if len(ids) <= sampling.max_prompt_tokens:
                return ids
        raise ValueError(
            f"problem {request.task.id}: its statement takes {len(ids)} tokens, more than "
            f"agents.{agent.name}.sampling.max_prompt_tokens = "
            f"{sampling.max_prompt_tokens}; raise it"
        )

    def _encode(self, messages: list[Message], agent: AgentConfig) -> list[int]:
        return conversation_ids(
            self.tokenizer,
            messages,
            add_generation_prompt=True,
            now=self._clock,
            options=agent.template_options,
        )

    def _check_template(self, agent: AgentConfig) -> None:
        """Raises `ModelError` if the chat template fails; some take no system message (a role)."""
        role = [{"role": "system", "content": agent.role}] if agent.role else []
        where = "chat_template" if agent.chat_template else "model: its chat template"
        try:
            first, second = (
                self._encode([*role, {"role": "user", "content": text}], agent)
                for text in ("?", "1 + 1")
            )
        except Exception as error:  # a template may raise anything
            kind = "" if isinstance(error, TemplateFailed) else f"{type(error).__name__}: "
            raise ModelError(
                f"agents.{agent.name}.{where} cannot write a prompt"
                f"{' with a role' if agent.role else ''}: {kind}{error}"
            ) from None
        if first == second:
            raise ModelError(
                f"agents.{agent.name}.{where} writes the same prompt for every statement; give one "
                "that writes each message about once"
            )
