"""Sampling with vLLM: an engine of its own that receives every new version of the weights.

Invariants:
- Ids go in and come out; vLLM has no tokenizer here.
- One version of the weights generates an answer from its first token to its last, or each piece
  of it, and vLLM itself reports which. Before weights are exchanged the answers in flight are
  completed, or stopped by `take_partial`, and the prefix cache is reset. What was stopped is
  requested anew, with its tokens behind the prompt and a seed of its own for the rest.
- A log-probability is that of the softmax of the whole vocabulary at the sampling temperature.
  Where some tokens cannot be drawn vLLM reports it at temperature 1 only; at any other there is
  none (`engine.config.generator_support` refuses settings that would learn from that).

In float32 the log-probabilities differ from the learner's by less than 1e-3 nats for every token.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedModel

from engine.config.agents import SamplingConfig
from engine.config.deadlines import VLLM_ANSWER, VLLM_CONTROL
from engine.config.generator_support import truncates
from engine.events.vocabulary import StopReason
from engine.policy.generators import Generator, GeneratorError, Setup
from engine.policy.generators.counter_rng import row_seed
from engine.policy.generators.vllm_engine import VllmEngine
from engine.policy.generators.vllm_settings import (
    engine_arguments,
    engine_devices,
    environment,
    logprobs_mode,
)
from engine.policy.generators.vllm_weights import (
    RECEIVE,
    ReloadSender,
    Sender,
    TransferSender,
    write_model,
)
from engine.policy.types import Generation, PartialGeneration

STOP_SECONDS = 0.1
"""Time after which requests that vLLM did not abort are aborted again."""


def make(setup: Setup) -> VllmGenerator:
    return VllmGenerator(setup)


class VllmGenerator(Generator):
    """Samples from the weights of the last call of `use`."""

    def __init__(self, setup: Setup):
        owner, policy = setup.agents[0], setup.loaded
        self._path = f"agents.{owner.name}.generator"
        self._end_ids = list(policy.end_ids)
        self._devices = engine_devices(owner, setup.weights.model)
        self._logprobs_mode = logprobs_mode(setup)
        self._numbers = itertools.count()
        self._requests = itertools.count()
        self._writing: dict[int, asyncio.Task[Generation | PartialGeneration]] = {}
        self._held: tuple[PreTrainedModel, int] | None = None
        """The model whose weights the engine has, and their version."""
        self._asleep = False
        self.reused_tokens = 0
        """Prompt tokens so far that vLLM had in its prefix cache."""
        self.seed = setup.seed
        self._engine = VllmEngine(self._path)
        self._sender = self._sender_of()
        try:
            self._start(setup)
        except BaseException:
            self.close()
            raise

    def use(self, model: PreTrainedModel, version: int) -> None:
        """Sends the engine these weights, unless it has them, and resets its prefix cache.

        Raises:
            GeneratorError: the engine ended, or did not receive them in time.
        """
        held = self._held
        if held is not None and held[0] is model and held[1] == version and not self._asleep:
            return
        self._call(self._pause_for_weights(), RECEIVE)
        self._sender.send(self._engine, model)
        self._call(self._resume_generation(version), RECEIVE)
        self._held, self._asleep = (model, version), False

    @property
    def unfinished(self) -> int:
        return len(self._writing)

    def submit(
        self,
        prompts: Sequence[list[int]],
        sampling: Sequence[SamplingConfig],
        version: int,
        seeds: Sequence[int] | None = None,
    ) -> list[int]:
        """Requests answers; vLLM generates them whether or not a call of `ended` waits."""
        seeds = self.row_seeds(len(prompts)) if seeds is None else seeds
        tickets = [next(self._numbers) for _ in prompts]
        answers = map(PartialGeneration, prompts, sampling, seeds)
        self.carry_on(dict(zip(tickets, answers, strict=True)), version)
        return tickets

    def carry_on(self, answers: Mapping[int, PartialGeneration], version: int) -> None:
        self._call(self._begin(answers, version), "accept requests")

    def take_partial(self) -> dict[int, PartialGeneration]:
        if not self._writing:
            return {}
        what = f"stop {self.unfinished} answers"
        return self._engine.call(self._stop(), what, VLLM_CONTROL)

    def ended(self, least: int, seconds: float) -> dict[int, Generation]:
        """Returns the finished answers by ticket.

        Raises:
            GeneratorError: the engine ended, refused a prompt, or took longer than its deadline.
        """
        waiting = self._ended(min(least, self.unfinished), seconds)
        return self._engine.call(waiting, f"generate {self.unfinished} answers", VLLM_ANSWER)

    def abort(self) -> None:
        self._call(self._cancel(), "cancel its requests")

    def sleep(self) -> None:
        """Frees the GPU that the engine shares with the learner; does nothing elsewhere."""
        if self._devices.shares_gpu and not self._asleep:
            # Level 2: weights are not kept on the host, since new ones arrive before any answer.
            self._call(self._engine.llm.sleep(level=2, mode="wait"), "sleep")
            self._asleep = True

    def close(self) -> None:
        self._engine.close()

    def _start(self, setup: Setup) -> None:
        with setup.weights.current() as model:
            write_model(model, self._engine.folder, untied=self._devices.gpus == 0)
            self._engine.start(
                engine_arguments(setup, self._devices, self._engine.folder),
                environment(setup, self._devices),
            )
            self.use(model, 0)

    def _sender_of(self) -> Sender:
        if self._devices.gpus == 0:
            return ReloadSender()
        backend = "ipc" if self._devices.shares_gpu else "nccl"
        return TransferSender(backend, self._devices.gpus)

    def _call(self, coroutine: Any, what: str) -> None:
        self._engine.call(coroutine, what, VLLM_CONTROL)

    async def _pause_for_weights(self) -> None:
        """Makes room for new weights and completes the answers in flight."""
        llm = self._engine.llm
        if self._asleep:
            await llm.wake_up(tags=["weights"])
        else:
            await llm.pause_generation(mode="wait", clear_cache=True)

    async def _resume_generation(self, version: int) -> None:
        llm = self._engine.llm
        if self._asleep:
            await llm.wake_up(tags=["kv_cache"])
        if not await llm.reset_prefix_cache():
            raise GeneratorError(
                f"{self._path}: vLLM did not reset the prefix cache of the old weights"
            )
        await llm.update_weight_version(str(version))
        await llm.resume_generation()

    async def _begin(self, answers: Mapping[int, PartialGeneration], version: int) -> None:
        for ticket, answer in answers.items():
            self._writing[ticket] = asyncio.create_task(self._answer(ticket, answer, version))

    async def _stop(self) -> dict[int, PartialGeneration]:
        llm = self._engine.llm
        pending = set(self._writing.values())
        while pending:
            # Again for requests that reached vLLM after the last time: it queues them.
            await llm.pause_generation(mode="abort", clear_cache=False)
            _, pending = await asyncio.wait(pending, timeout=STOP_SECONDS)
        await llm.resume_generation()  # of nothing: it waits for the next requests, or for `use`
        results = {ticket: task.result() for ticket, task in self._writing.items()}
        stopped = {t: one for t, one in results.items() if isinstance(one, PartialGeneration)}
        for ticket in stopped:
            del self._writing[ticket]
        return stopped

    async def _ended(self, least: int, seconds: float) -> dict[int, Generation]:
        finished: dict[int, Generation] = {}
        until = time.monotonic() + seconds
        while len(finished) < least:
            left = until - time.monotonic()
            await asyncio.wait(
                self._writing.values(),
                timeout=None if math.isinf(left) else max(0.0, left),
                return_when=asyncio.FIRST_COMPLETED,
            )
            for ticket in [t for t, task in self._writing.items() if task.done()]:
                result = self._writing.pop(ticket).result()
                if isinstance(result, PartialGeneration):
                    raise GeneratorError(f"{self._path}: vLLM aborted an answer by itself")
                finished[ticket] = result
            if left <= 0:
                break
        return finished

    async def _cancel(self) -> None:
        tasks = list(self._writing.values())
        self._writing.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(
        self, ticket: int, answer: PartialGeneration, version: int
    ) -> Generation | PartialGeneration:
        async with asyncio.timeout(VLLM_ANSWER.seconds):
            return await self._piece(ticket, answer, version)

    async def _piece(
        self, ticket: int, answer: PartialGeneration, version: int
    ) -> Generation | PartialGeneration:
        """Returns the answer after its last piece, or after another one where it was stopped."""
        started = time.perf_counter()
        # Not the ticket, which another piece of the answer may have had.
        name = str(next(self._requests))
        prompt = {"prompt_token_ids": answer.context}
        outputs = self._engine.llm.generate(prompt, self._options(answer), name)
        (done,) = [part async for part in outputs if part.finished]
        self.reused_tokens += done.num_cached_tokens or 0
        output = done.outputs[0]
        versions = {span.version for span in output.weight_versions or ()}
        if output.token_ids and versions != {str(version)}:
            raise GeneratorError(
                f"{self._path}: vLLM wrote with the weights of version {sorted(versions)}, not "
                f"{version}"
            )
        ids = [*answer.output_ids, *output.token_ids]
        logprobs = [*answer.logprobs, *self._logprobs(output, answer.sampling)]
        seconds = time.perf_counter() - started
        if output.finish_reason == "abort":
            return answer.longer(version, ids, logprobs, seconds)
        stop = StopReason.END_OF_TEXT if output.finish_reason == "stop" else StopReason.MAX_TOKENS
        return answer.ended(version, ids, logprobs, stop, seconds)

    def _options(self, answer: PartialGeneration) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        sampling = answer.sampling
        return SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            min_p=sampling.min_p,
            max_tokens=sampling.max_new_tokens - len(answer.output_ids),
            seed=_seed(answer),
            logprobs=0,  # of the drawn token only
            stop_token_ids=self._end_ids,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    def _logprobs(self, output: Any, sampling: SamplingConfig) -> list[float]:
        """Returns log-probabilities by token; none where vLLM's are at another temperature, or of
        a truncated vocabulary."""
        at_one = self._logprobs_mode == "raw_logprobs"
        if not output.token_ids or ((sampling.temperature != 1) if at_one else truncates(sampling)):
            return []
        pairs = zip(output.token_ids, output.logprobs, strict=True)
        return [by_token[token].logprob for token, by_token in pairs]


def _seed(answer: PartialGeneration) -> int:
    """Returns the seed of an answer's next piece. vLLM's random numbers cannot be continued at a
    token, and with the same seed a piece would repeat those of the first."""
    tokens = len(answer.output_ids)
    return row_seed(answer.seed, "piece", tokens) if tokens else answer.seed
