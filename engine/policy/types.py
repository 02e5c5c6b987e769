"""Requests and answers that pass between the training loop and an agent. Invariant: no torch here:
the loop's process holds no model and must not pay for the import."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from engine.config.agents import SamplingConfig
from engine.environments.types import Message
from engine.events.states import NoProgram
from engine.events.vocabulary import StopReason
from engine.sandbox.cases import Plain

Stream = tuple[str | int, ...]
"""Name of a sequence of random numbers; those of different names are independent."""


SHOWN_CHARACTERS = 20_000
SHOWN_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive tokens of an answer that one policy version sampled."""

    version: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Generation:
    """One answer. `output_ids` ends with the end-of-text id if that is why it stopped.

    `logprobs[i]` is the natural log-probability of `output_ids[i]` in the softmax of the whole
    vocabulary at `temperature`, which is what the learner computes, by the weights that sampled
    this token. `top_p`, `top_k` and `min_p` decide which tokens can be drawn and do not affect
    these numbers.
    """

    prompt_ids: Sequence[int]
    output_ids: Sequence[int]
    logprobs: Sequence[float]
    stop: StopReason
    policy_version: int
    """Version that sampled it; of an answer in pieces the oldest, which is that of the first."""
    seconds: float
    temperature: float = 1.0
    reported_tokens: int | None = None
    """Length of the output where a server reports it without ids; None: that of `output_ids`."""
    pieces: tuple[Piece, ...] = ()
    """Pieces of `output_ids`, in order, if several versions sampled it; else empty."""

    @property
    def is_cut(self) -> bool:
        """Whether the answer ended at a limit of tokens."""
        return self.stop != StopReason.END_OF_TEXT

    @property
    def tokens(self) -> int:
        """Length of the output."""
        return len(self.output_ids) if self.reported_tokens is None else self.reported_tokens

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles sequences as arrays: a fifth of the memory, and nothing that the garbage
        collector would traverse repeatedly in a tree of many long answers."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["prompt_ids"] = array("q", self.prompt_ids)
        values["output_ids"] = array("q", self.output_ids)
        values["logprobs"] = array("d", self.logprobs)
        return Generation, tuple(values.values())


@dataclass(frozen=True, slots=True)
class PartialGeneration:
    """An answer that was stopped inside, with all that carries it on; without any token it has not
    begun."""

    prompt_ids: list[int]
    sampling: SamplingConfig
    seed: int
    output_ids: Sequence[int] = ()
    logprobs: Sequence[float] = ()
    pieces: tuple[Piece, ...] = ()
    """Pieces of `output_ids`, in order; versions of neighbours differ."""
    seconds: float = 0.0
    """Time of generation so far, without that in which it was stopped."""
    stop_ids: tuple[int, ...] = ()
    """Ids that end it in addition to the model's own."""

    @property
    def context(self) -> list[int]:
        """The prompt and all tokens so far, from which the next one is sampled."""
        return [*self.prompt_ids, *self.output_ids] if self.output_ids else self.prompt_ids

    def pieces_with(self, version: int, tokens: int) -> tuple[Piece, ...]:
        """Returns its pieces after `tokens` more of this version; those of one version are one."""
        if not tokens:
            return self.pieces
        if self.pieces and self.pieces[-1].version == version:
            return (*self.pieces[:-1], Piece(version, self.pieces[-1].tokens + tokens))
        return (*self.pieces, Piece(version, tokens))

    def longer(
        self, version: int, output_ids: Sequence[int], logprobs: Sequence[float], seconds: float
    ) -> PartialGeneration:
        """Returns it with the ids and log-probabilities of all its tokens, the new ones being of
        this version; `seconds` are those of the new ones."""
        pieces = self.pieces_with(version, len(output_ids) - len(self.output_ids))
        return replace(
            self,
            output_ids=output_ids,
            logprobs=logprobs,
            pieces=pieces,
            seconds=self.seconds + seconds,
        )

    def ended(
        self,
        version: int,
        output_ids: Sequence[int],
        logprobs: Sequence[float],
        stop: StopReason,
        seconds: float,
    ) -> Generation:
        """Returns the whole answer, of the same arguments as `longer`."""
        whole = self.longer(version, output_ids, logprobs, seconds)
        return Generation(
            prompt_ids=self.prompt_ids,
            output_ids=output_ids,
            logprobs=logprobs,
            stop=stop,
            policy_version=whole.pieces[0].version if whole.pieces else version,
            seconds=whole.seconds,
            temperature=self.sampling.temperature,
            pieces=whole.pieces if len(whole.pieces) > 1 else (),
        )


@dataclass(frozen=True, slots=True)
class Request(Plain):
    """A request for one answer: the turn of a task that follows an observation. Its environment
    alone reads either."""

    task: Any
    """The problem of the tree."""
    observation: Any = None
    """What was observed after the turn above, such as a program's feedback; None in the first."""
    name: Stream = ()
    """Name of the answer's random numbers, which makes them independent of other requests; if
    unset, they depend on its index among all requests."""
    node: tuple[int, int] | None = None
    """Tree and node of the answer in the event log, if it is logged; only drafts use it."""


@dataclass(frozen=True, slots=True)
class AnswerCall(Plain):
    """A call for answers: one for each request, in order, by agent."""

    requests: Mapping[str, Sequence[Request]]
    """Requests by agent; those to several agents of one policy are generated as one batch."""
    temperature: float | None = None
    """Overrides that of the agents."""
    starting_weights: bool = False
    """Whether policies answer with the weights with which they started."""
    stream: Stream | None = None
    """With it, the random numbers of this call depend on the policy's seed and this name; in a run
    the learners answer such calls, and generators all others."""

    def of(self, requests: Mapping[str, Sequence[Request]]) -> AnswerCall:
        """Returns the same call for other requests."""
        return replace(self, requests=requests)


@dataclass(frozen=True, slots=True)
class Answer(Plain):
    """One answer of an agent, as tokens and as what its environment read in it."""

    generation: Generation
    program: str
    """The program, or another action; empty if there is none."""
    text: str = ""
    """The whole answer, without special tokens."""
    messages: tuple[Message, ...] = ()
    """The request to a server, where no prompt ids are known."""
    prompt: str = ""
    """The prompt as text, or its last `SHOWN_CHARACTERS` if it is longer."""
    tokens: tuple[str, ...] = ()
    """Text of each of the first `SHOWN_TOKENS` tokens of the output, special ones included."""
    no_program: NoProgram | None = None
    """Why the answer holds no program for its problem; None if it holds one."""


@dataclass(frozen=True, slots=True)
class Size:
    """Number of weights of an agent's policy, and of trained ones (0 if it is frozen)."""

    total: int
    trained: int

    def __str__(self) -> str:
        learn = {0: " (frozen)", self.total: ""}.get(self.trained, f" ({self.trained:,} learn)")
        return f"{self.total:,} parameters{learn}"
