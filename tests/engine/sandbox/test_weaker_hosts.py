"""Tests of hosts without namespaces: the second tier isolates; without it, nothing runs."""

import json
import os
import subprocess
import sys

import pytest

from engine.events.vocabulary import Verdict
from engine.run.exit_status import isolation_line
from engine.sandbox.host.errors import SandboxUnavailable
from engine.sandbox.host.process import Zygote
from tests.helpers.waiting import patience

pytestmark = pytest.mark.service

# Refuses unshare(2) to itself and its descendants, as container runtimes do.
OWNER = """
import ctypes, json, os, sys
from engine.config.schema import SandboxConfig
from engine.sandbox.guest import seccomp
from engine.sandbox.host.errors import SandboxUnavailable
from engine.sandbox.host.job import Job
from engine.sandbox.host.sandbox import Sandbox

UNSHARE, CHROOT = {"x86_64": (272, 161), "aarch64": (97, 51)}[os.uname().machine]
refused = {UNSHARE: [seccomp.REFUSE]}
for name in sys.argv[1:]:
    refused[{"landlock": 444, "chroot": CHROOT}[name]] = [seccomp.REFUSE]
program, libc = seccomp.assemble(refused, [seccomp.ALLOW]), ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
settings, texts = json.load(sys.stdin)
try:
    with Sandbox(SandboxConfig(workers=1, cpu_seconds=0.4, **settings)) as sandbox:
        jobs = [Job(text, "solve", ((),)) for text in texts]
        outcomes = [execution.outcomes[0] for execution in sandbox.run(jobs)]
        found = [[o.verdict, o.value] for o in outcomes]
        print(json.dumps([sandbox.tier(), sandbox.walls(), found]))
except SandboxUnavailable as error:
    print(json.dumps(["unavailable", [], str(error)]))
"""
REFUSED = [
    "import os\ndef solve(): os.kill(os.getppid(), 9)",
    "import os\ndef solve(): os.kill(-1, 9)",
    "import os\ndef solve(): return os.fork()",
    "def solve(): return open('/tmp/grove-was-here', 'w')",
    "import ctypes\ndef solve():\n    if ctypes.CDLL(None).socket(2, 1, 0) < 0: raise OSError",
    "import os\ndef solve(): os.setuid(0) if os.getuid() else 1 / 0",
]
HONEST = "def solve(): return [1]"


def run(programs, *refused, **settings):
    """Tier, isolation and outcomes on a host that refuses unshare and these."""
    settings["wall_seconds"] = 60 * patience()  # of programs that never wait
    done = subprocess.run(
        [sys.executable, "-c", OWNER, *refused],
        input=json.dumps([settings, programs]), capture_output=True, text=True,
        timeout=120 * patience(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


ROOT = os.getuid() == 0


@pytest.mark.parametrize(
    "refused",
    [
        (),
        ("chroot",),
        pytest.param(("landlock",), marks=pytest.mark.skipif(not ROOT, reason="needs root")),
    ],
)
def test_without_namespaces_a_program_is_still_contained(refused):
    endless = "def solve():\n    while True: pass"
    tier, walls, results = run([HONEST, *REFUSED, endless, HONEST], *refused)
    assert tier == "restricted"
    assert "seccomp" in walls
    assert not {"pid", "net", "mount"} & set(walls)
    assert not set(refused) & set(walls)
    first, *others, late, last = results
    assert first == last == [None, [1]]
    assert [verdict for verdict, _ in others] == [Verdict.RUNTIME_ERROR] * len(REFUSED)
    assert late == [Verdict.TIME_LIMIT, None]


LOOKS = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
FSTAT, OPENAT = {"x86_64": (5, 257), "aarch64": (80, 56)}[os.uname().machine]
def solve():
    found = (ctypes.c_uint64 * 32)()
    raw = [libc.syscall(FSTAT, fd, found) for fd in range(4)] + [libc.fstat(3, found)]
    for path in (b"/", b"/dev/null", b"/usr/lib"):
        raw.append(libc.syscall(OPENAT, -100, path, 0x200000))
    described = os.fstat(3)
    return raw, sys.path and os.path.exists(sys.path[-1]), described.st_ino, described.st_size
"""
MANY = """
import asyncio.events, concurrent.futures, hashlib, sqlite3, unicodedata, zlib
import xml.etree.ElementTree
import email.mime.text, encodings.cp1251, multiprocessing.pool, unittest.mock, zoneinfo
def solve():
    async def one(): return zlib.crc32(b"x")
    return [asyncio.run(one()), hashlib.sha256(b"x").hexdigest()[:4],
            "é".encode("cp1251", "ignore").decode(), unicodedata.name("é"),
            xml.etree.ElementTree.fromstring("<a/>").tag]
"""


def test_without_namespaces_no_path_leads_to_a_file_and_no_file_has_a_number():
    _, walls, ((_, actual),) = run([LOOKS])
    assert "no_files" in walls
    assert actual == [[-1] * 8, False, 0, 0]


def test_without_namespaces_the_standard_library_is_there_all_the_same():
    _, _, ((verdict, actual),) = run([MANY], memory_mb=128)
    assert (verdict, actual[0], actual[1]) == (None, 2363233923, "2d71")
    assert actual[3:] == ["LATIN SMALL LETTER E WITH ACUTE", "a"]


def test_a_host_without_either_tier_is_refused_with_what_it_lacks():
    tier, _, error = run([HONEST], "landlock", "chroot")
    assert tier == "unavailable"
    for word in ("neither tier", "Landlock", "namespaces"):
        assert word in error


def test_only_the_explicit_setting_lets_a_single_user_go_on():
    tier, _, results = run([HONEST], "landlock", "chroot", allow_unsafe=True)
    assert (tier, results) == ("none", [[None, [1]]])
    assert isolation_line(tier).level == "warning"
    assert isolation_line("full").level == "info"


def test_a_sandbox_that_takes_too_long_to_start_says_so():
    with pytest.raises(SandboxUnavailable, match=r"did not start within 0 s; .* sandbox\.workers"):
        Zygote(0, start_seconds=0.0)
