"""Slot of the sandbox: one zygote for programs, one for judges, and their replacement on failure.

Invariants: judges and checkers, which know the expected values, run under a zygote that never runs
a program; a broken zygote is replaced and its job run again, once.
"""

from __future__ import annotations

import itertools
import marshal
import os
from contextlib import ExitStack

from engine.config.deadlines import SANDBOX_GRACE
from engine.config.sandbox import SandboxConfig
from engine.events.vocabulary import Verdict
from engine.sandbox.guest import wire
from engine.sandbox.guest.wire import FRAME, max_payload
from engine.sandbox.host.job import (
    AnyJob,
    Bounds,
    CallOutcome,
    Check,
    Execution,
    Job,
    Script,
    Trial,
)
from engine.sandbox.host.job import bounds as default_bounds
from engine.sandbox.host.memfile import channel, content, memory_file
from engine.sandbox.host.process import Zygote, ZygoteFailed
from engine.sandbox.host.stream import read_forked_calls, read_frames, read_script, read_trial

_numbers = itertools.count()


class Slot:
    """Runs jobs one at a time. Not thread-safe: it belongs to the thread that started it, and ends
    with it."""

    def __init__(self, config: SandboxConfig):
        self._config = config
        self._zygotes: dict[str, Zygote] = {}

    @property
    def pids(self) -> list[int]:
        return [zygote.pid for zygote in self._zygotes.values()]

    def programs(self) -> Zygote:
        """Returns the zygote of programs; starts it if necessary.

        Raises:
            SandboxUnavailable: it cannot be started.
        """
        return self._zygote("programs")

    def run(self, job: AnyJob) -> Execution:
        """Runs one job; after a broken zygote, restarts it and repeats the job once.

        Raises:
            SandboxUnavailable: a zygote cannot be started.
            ValueError: an argument is not a plain value.
        """
        for _ in range(2):
            try:
                return self._run(job, job.bounds or default_bounds(self._config))
            except ZygoteFailed:
                cause = "; ".join({zygote.stderr_tail() for zygote in self._zygotes.values()})
                self.close()
        failure = CallOutcome(Verdict.SANDBOX_FAILURE, error=f"the sandbox died twice: {cause}")
        return Execution((failure,) * job.tests, 0.0)

    def close(self) -> None:
        """Kills its zygotes, and all that they run."""
        while self._zygotes:
            self._zygotes.popitem()[1].close()

    def _run(self, job: AnyJob, bounds: Bounds) -> Execution:
        if isinstance(job, Script):
            return self._run_script(job, bounds)
        if isinstance(job, Trial):
            return self._run_trial(job, bounds)
        if isinstance(job, Job) and job.fork_per_call:
            return self._run_fork_per_call(job, bounds)
        return self._run_calls(job, bounds)

    def _run_calls(self, job: Job | Check, bounds: Bounds) -> Execution:
        zygote = self._zygote("judges" if isinstance(job, Check) else "programs")
        # Version 2 shares no references: equal rows of an argument are separate objects.
        calls = [marshal.dumps(arguments, 2) for arguments in job.calls]
        packed = marshal.dumps(
            (job.prelude, job.program, job.entry_point, calls, bounds.output_bytes)
        )
        with memory_file(packed) as request, memory_file() as result:
            most = min(
                _max_stream_bytes(job.tests, bounds),
                max(wire.MAX_WRITTEN, _max_stream_bytes(1, bounds)),
            )
            zygote.order(wire.CALLS, bounds, most, (request, result))
            child_exit = zygote.wait(bounds.wall_seconds)
            return read_frames(content(result, most), child_exit, job.tests, bounds)

    def _run_fork_per_call(self, job: Job, bounds: Bounds) -> Execution:
        zygote = self._zygote("programs")
        calls = [marshal.dumps(arguments, 2) for arguments in job.calls[: wire.MAX_FORKS]]
        sizes = [len(call) for call in calls]
        packed = marshal.dumps(
            (job.prelude, job.program, job.entry_point, bounds.output_bytes, sizes)
        )
        most = _max_stream_bytes(1, bounds)
        with ExitStack() as files:
            # `codes` is for the compiled program.
            request, arguments, codes, *results = [
                files.enter_context(memory_file(content))
                for content in (packed, b"".join(calls), b"", *(b"" for _ in calls))
            ]
            zygote.order(wire.FORK_PER_CALL, bounds, most, (request, arguments, codes, *results))
            child_exit = zygote.wait(2 * bounds.wall_seconds)
            streams = [content(result, most) for result in results[: len(child_exit.children)]]
        return read_forked_calls(streams, child_exit, bounds)

    def _run_script(self, job: Script, bounds: Bounds) -> Execution:
        zygote = self._zygote("programs")
        stdin = job.stdin.encode("utf-8", "surrogateescape")
        with (
            memory_file(marshal.dumps((job.prelude, job.program))) as request,
            memory_file() as result,
            memory_file(stdin) as given,
            memory_file() as printed,
        ):
            most = max(bounds.output_bytes + 1, _max_stream_bytes(1, bounds))
            zygote.order(
                wire.SCRIPT, bounds, bounds.output_bytes + 1, (request, result, given, printed)
            )
            child_exit = zygote.wait(bounds.wall_seconds)
            text = content(printed, bounds.output_bytes + 1)
            return read_script(content(result, most), text, child_exit, bounds)

    def _run_trial(self, job: Trial, bounds: Bounds) -> Execution:
        programs, judges = self._zygote("programs"), self._zygote("judges")
        limit = bounds.output_bytes
        program = marshal.dumps((job.prelude, job.program, job.entry_point, limit))
        judge = marshal.dumps((job.prelude, job.codes, job.entry_point, limit))
        most = _max_stream_bytes(job.tests, bounds)
        with (
            memory_file(program) as program_job,
            memory_file() as unused,
            memory_file(judge) as request,
            memory_file() as result,
        ):
            with ExitStack() as ends:
                (take_request, send_request), (take_response, send_response) = (
                    ends.enter_context(channel()),
                    ends.enter_context(channel()),
                )
                programs.order(
                    wire.ANSWER, bounds, 0, (program_job, unused, take_request, send_response)
                )
                judges.order(
                    wire.JUDGE, bounds, most, (request, result, take_response, send_request)
                )
            judged = judges.wait(bounds.wall_seconds)
            programs.stop()
            answered = programs.wait(SANDBOX_GRACE.seconds)
            return read_trial(content(result, most), judged, answered, job.tests, bounds)

    def _zygote(self, role: str) -> Zygote:
        if role not in self._zygotes:
            number = os.getpid() % (1 << 22) * 256 + next(_numbers) % 256
            self._zygotes[role] = Zygote(number, self._config.allow_unsafe)
        return self._zygotes[role]


def _max_stream_bytes(tests: int, bounds: Bounds) -> int:
    """Returns the most bytes that an honest child writes."""
    return tests * (FRAME.size + max_payload(bounds.output_bytes))
