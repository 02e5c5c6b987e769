"""Runs the suite in two processes, then each test that failed once more: `python -m tests.run`.

A test that passes the second time is flaky: the run is green, and says so with its name, both
times and the first traceback, in the output and in build/flaky.jsonl. More than five, or one that
fails twice, and the run is red. All other arguments are passed on to pytest. At the end it prints
what the run cost, and the rooms above their budgets (`tests.times`).

Exit status: that of pytest.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.helpers.measures import OPTION, Result, read_results
from tests.helpers.waiting import VARIABLE, measured_patience
from tests.times import RESULTS, Cost, over_budget, write_cost

MOST_FLAKY = 5
MOST_AGAIN = 20
"""So many failures are run once more; a run with more of them is red in any case."""
TEST_SECONDS = 60.0
"""Time limit of a test, times the patience of the run."""
BACKSTOP = 1.5
"""A test that hangs where no signal reaches it is ended with its process after so many times the
limit; another process goes on with the next test."""
FILE_BY_FILE = ("--dist=loadfile", "--no-loadscope-reorder")
BUILD = Path("build")
AGAIN = BUILD / "again.jsonl"
FLAKY = BUILD / "flaky.jsonl"


@dataclass(frozen=True)
class Flaky:
    """A test that failed, and passed when it was run alone."""

    first: Result
    second: Result

    def __str__(self) -> str:
        return (
            f"{self.first.test}: failed after {self.first.seconds:.1f} s, "
            f"passed alone in {self.second.seconds:.1f} s"
        )


def main(arguments: list[str]) -> int:
    """Runs the suite; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.run", allow_abbrev=False)
    parser.add_argument(
        "--test-seconds", type=float, default=TEST_SECONDS, metavar="N",
        help="time limit of a test on an idle machine (%(default)s)",
    )  # fmt: skip
    options, arguments = parser.parse_known_args(arguments)
    began = time.monotonic()
    cpu_before = machine_cpu_seconds()
    patience = os.environ.setdefault(VARIABLE, str(measured_patience()))
    limit = options.test_seconds * float(patience)
    limits = [
        f"--timeout={limit}",
        *("-o", f"faulthandler_timeout={limit * BACKSTOP}"),
        *("-o", "faulthandler_exit_on_timeout=true"),
    ]
    print(f"Patience {patience}: a test may take {limit:.0f} s.", flush=True)
    status = run_pytest(["--numprocesses=2", *limits, *arguments], RESULTS)
    results = read_results(RESULTS)
    failed = [result for result in results if result.outcome == "failed"]
    if status == 1 and failed:
        status = run_again(failed, limits)
    seconds = time.monotonic() - began
    cost = Cost(seconds, children_cpu_seconds(), machine_cpu_seconds() - cpu_before)
    write_cost(cost)
    print(f"\n{summary(results)}; {cost}")
    for line in over_budget(results):
        print(line)
    return status


def run_again(failed: list[Result], limits: list[str]) -> int:
    """Runs tests that failed once more, one after another with nothing beside them; returns 0 if
    all of them are flaky, and few."""
    print(f"\nOnce more, alone: {len(failed[:MOST_AGAIN])} of {len(failed)} tests that failed.")
    tests = [result.test for result in failed[:MOST_AGAIN]]
    # One process beside this one, so that a test which ends it is named here too.
    run_pytest(["--numprocesses=1", *limits, "-m", "", *tests], AGAIN)
    seconds = {result.test: result for result in read_results(AGAIN)}
    flaky = [
        Flaky(first, seconds[first.test])
        for first in failed
        if first.test in seconds and seconds[first.test].outcome != "failed"
    ]
    report_flaky(flaky)
    again = {one.first.test for one in flaky}
    for first in failed:
        if first.test not in again:
            how = "failed twice" if first.test in seconds else "failed, and was not run again"
            print(f"FAILED {first.test} ({how})")
    if len(flaky) > MOST_FLAKY:
        print(f"{len(flaky)} tests are flaky; a run with more than {MOST_FLAKY} is red.")
    return 0 if len(flaky) == len(failed) <= MOST_FLAKY else 1


def report_flaky(flaky: list[Flaky]) -> None:
    """Prints flaky tests with their first tracebacks, and adds them to build/flaky.jsonl."""
    with FLAKY.open("a") as file:
        for one in flaky:
            print(f"\nflaky: {one}\n{one.first.traceback}")
            line = {
                "test": one.first.test,
                "first_seconds": round(one.first.seconds, 3),
                "second_seconds": round(one.second.seconds, 3),
                "traceback": one.first.traceback,
                "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            }
            file.write(json.dumps(line) + "\n")


def summary(results: list[Result]) -> str:
    """Returns the counts of the first run, as in "6609 passed, 4 skipped"."""
    outcomes = [result.outcome for result in results]
    counts = {name: outcomes.count(name) for name in ("failed", "passed", "skipped")}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no tests"


def run_pytest(arguments: list[str], file: Path) -> int:
    """Runs pytest with its results in this file; returns its exit status."""
    file.unlink(missing_ok=True)
    BUILD.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "pytest", f"{OPTION}={file}", *FILE_BY_FILE, *arguments]
    process = subprocess.Popen(command)
    while True:
        with contextlib.suppress(KeyboardInterrupt):  # pytest has it too, and says what it did
            return process.wait()


def children_cpu_seconds() -> float:
    """Returns the CPU time of everything that this process has started, as `time` measures it:
    without Postgres and Ray, which outlive their parents."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def machine_cpu_seconds() -> float:
    """Returns the CPU time of everything on this machine so far."""
    cpu = psutil.cpu_times()
    return cpu.user + cpu.nice + cpu.system


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
