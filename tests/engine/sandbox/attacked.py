"""A service under attack: verifies programs in a process of its own and checks for damage.

    python -m tests.engine.sandbox.attacked full|restricted

Each line of stdin is a JSON object {"path", "program", "waits"}; each line of stdout reports the
outcome. Only an attack that `waits`, so that nothing but the wall limit ends it, has a short one.
With `restricted`, unshare(2) is refused to this process and its descendants, as container runtimes
do.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from engine.config.sandbox import SandboxConfig
from engine.problems.problem import CallTest, CodeTest, Comparison, Problem, StdinTest
from engine.sandbox.guest import seccomp
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.verify import verify
from tests.helpers.waiting import eventually, patience

LIMITS = {"cpu_seconds": 0.3, "memory_mb": 96, "output_bytes": 4096}
WALL_OF_WAITING = 1.5
PATIENT = 60.0 * patience()
"""Wall seconds that no program needs which does not wait, and CPU seconds of an honest one."""
ROWS = ([2, 1], [3, 1], [9, 8, 7])
CALLS = tuple(CallTest((row,), sorted(row)) for row in ROWS)
CODES = tuple(
    CodeTest(
        "# canary_of_the_expected_answer\n"
        f"for given, wanted in zip([{row}] * 2, map(sorted, [{row}] * 2)):\n"
        "    assert candidate(given) == wanted\n"
        f"assert all(a == b for a, b in zip(map(candidate, [{row}]), [{sorted(row)}]))\n"
    )
    for row in ROWS
)
SCRIPTS = tuple(
    StdinTest(" ".join(map(str, row)) + "\n", " ".join(map(str, sorted(row))) + "\n")
    for row in ROWS
)
CHECKER = "def check(given, expected, actual):\n    return sorted(given[0]) == list(actual)\n"
QUESTIONS = 8


def _answers(right: bool) -> tuple[CallTest, ...]:
    """The answer to number 0 is always yes, so that the first test reveals nothing."""
    return (CallTest((0,), True), *(CallTest((n,), right) for n in range(1, QUESTIONS + 1)))


def _asserts(right: bool) -> tuple[CodeTest, ...]:
    return tuple(CodeTest(f"assert candidate({t.arguments[0]}) is {t.expected}")
                 for t in _answers(right))  # fmt: skip


# The last answer is so long that each may have 64 KiB, and each takes long to read.
MANY = (*(CallTest((n,), n) for n in range(119)), CallTest((119,), "x" * (1 << 14)))


PROBLEMS = {
    "many": (Problem("many", "Answer.", "solve", MANY[:1], MANY[1:]),),
    "call": (Problem("call", "Sort.", "solve", CALLS[:1], CALLS[1:]),),
    "stdin": (Problem("stdin", "Sort.", "", SCRIPTS[:1], SCRIPTS[1:]),),
    "code": (Problem("code", "Sort.", "solve", CODES[:1], CODES[1:]),),
    "checker": (
        Problem("checker", "Sort.", "solve", CALLS[:1], CALLS[1:],
                comparison=Comparison(checker=CHECKER)),
    ),
    "either": tuple(
        Problem(f"either-{right}", "Answer.", "solve", tests[:1], tests[1:])
        for right in (True, False) for tests in (_answers(right),)
    ),
    "either_code": tuple(
        Problem(f"either-code-{right}", "Answer.", "solve", tests[:1], tests[1:])
        for right in (True, False) for tests in (_asserts(right),)
    ),
}  # fmt: skip


def earned(path: str, fractions: list[float]) -> float:
    """Reward of an attack: of two problems with opposite answers, the share of questions that it
    got right in both."""
    if not path.startswith("either"):
        return fractions[0]
    right = sum(fraction * (QUESTIONS + 1) for fraction in fractions) - 2
    return max(0.0, round(right - QUESTIONS, 6)) / QUESTIONS


HONEST = (
    "call",
    "# canary_of_an_earlier_program\nNOTE = 'canary_of_an_earlier_program'\n"
    "def solve(x):\n    return sorted(x)\n",
)
HONEST_SCRIPT = ("stdin", "print(*sorted(map(int, input().split())))\n")
TRACES = ("grove-was-here", "flood0", "notes", "link", "closed")
PLACES = ("/", "/etc", "/tmp", "/var/tmp", "/dev/shm", "/run", "/usr/lib", str(Path.home()))


def refuse_unshare() -> None:
    libc = ctypes.CDLL(None)
    number = {"x86_64": 272, "aarch64": 97}[os.uname().machine]
    program = seccomp.assemble({number: [seccomp.REFUSE]}, [seccomp.ALLOW])
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0


class Host:
    """Targets of attacks on the host; `damage` reports what was damaged."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.chmod(0o755)
        self.secret = folder / "secret"
        self.secret.write_text("[1, 2]")
        self.secret.chmod(0o666)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.setblocking(False)
        self.quiet = socket.socket(socket.AF_UNIX)
        self.quiet.bind(f"\0grove-test-{os.getpid()}")
        self.before = self._state()

    def words(self) -> dict[str, str]:
        here = Path(__file__).resolve().parent
        return {
            "@OWNER@": str(os.getpid()),
            "@PORT@": str(self.server.getsockname()[1]),
            "@SECRET@": str(self.secret),
            "@FOLDER@": str(self.folder),
            "@TESTS@": str(here),
            "@ENGINE@": str(here.parents[2] / "engine"),
        }

    def damage(self) -> list[str]:
        now = self._state()
        results = [f"{key}: {now[key]!r}" for key in now if now[key] != self.before[key]]
        try:
            self.server.accept()
            results.append("a connection arrived")
        except BlockingIOError:
            pass
        return results

    def _state(self) -> dict[str, object]:
        me = psutil.Process()
        traces = [str(Path(p) / name) for p in PLACES for name in TRACES]
        return {
            "traces": [path for path in traces if os.path.lexists(path)],
            "library": (Path(os.__file__).parent / "grove_owned.py").exists(),
            "secret": (self.secret.read_text(), self.secret.stat().st_mode),
            "folder": sorted(path.name for path in self.folder.iterdir()),
            "nice": me.nice(),
            "affinity": me.cpu_affinity(),
            "files": me.rlimit(psutil.RLIMIT_NOFILE),
        }


def leftovers(sandbox: Sandbox) -> list[str]:
    """Processes below the zygotes, other than each one's single init; dead ones may take a moment
    to be reaped."""
    found: list[str] = []

    def are_gone() -> bool:
        found.clear()
        for pid in sandbox.zygote_pids():
            children = psutil.Process(pid).children(recursive=True)
            found.extend(str(p) for p in children if p.ppid() != pid or len(children) > 1)
        return not found

    with suppress(AssertionError):
        eventually(are_gone, "an end of all processes of an attack", seconds=10)
    return found


def settings(wall_seconds: float = PATIENT, **changes: float) -> SandboxConfig:
    return SandboxConfig(workers=1, wall_seconds=wall_seconds, **LIMITS | changes)


HONEST_SETTINGS = settings(cpu_seconds=PATIENT)


def main() -> None:
    if sys.argv[1] == "restricted":
        refuse_unshare()
    os.environ["GROVE_TEST_SECRET"] = "hidden"
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        Sandbox(HONEST_SETTINGS) as sandbox,
    ):
        host = Host(Path(folder))
        (first,) = verify(sandbox, [(PROBLEMS["call"][0], HONEST[1])])
        hello = {"tier": sandbox.tier(), "walls": sandbox.walls(), "honest": first.verdict}
        print(json.dumps(hello), flush=True)
        for line in sys.stdin:
            data = json.loads(line)
            program = data["program"]
            for word, value in host.words().items():
                program = program.replace(word, value)
            pids = sandbox.zygote_pids()
            before = time.process_time()
            sandbox.config = settings(WALL_OF_WAITING) if data["waits"] else settings()
            results = verify(sandbox, [(p, program) for p in PROBLEMS[data["path"]]])
            result = next((r for r in results if not r.passed), results[0])
            seconds = time.process_time() - before
            left = leftovers(sandbox)
            after = [HONEST, HONEST_SCRIPT, ("code", HONEST[1])]
            sandbox.config = HONEST_SETTINGS
            honest = verify(sandbox, [(PROBLEMS[path][0], text) for path, text in after])
            answer = {
                "verdict": result.verdict,
                "fraction": earned(data["path"], [r.fraction for r in results]),
                "error": result.error,
                "seconds": seconds,
                "leftovers": left,
                "damage": host.damage(),
                "honest": [v.verdict for v in honest],
                "zygotes_lived": set(pids) <= set(sandbox.zygote_pids()),
            }
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
