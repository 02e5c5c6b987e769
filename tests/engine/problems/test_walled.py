"""Tests that Parquet and Arrow are parsed inside the sandbox's isolation, for every caller."""

import datetime
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import psutil
import pyarrow
import pytest
from pyarrow import ipc, parquet

from engine.problems.containers import columns, rows_of
from engine.problems.errors import DatasetError
from tests.engine.sandbox.test_attacks import NOBODY, PACKAGES, SERVICES
from tests.helpers.waiting import eventually, patience
from workers.processes import has_ended

pytestmark = pytest.mark.service

READER = Path(columns.__file__).parent
ATTACKS = """
import os, socket, sys
sys.path.insert(0, {reader!r})
import isolated_reader
isolated_reader.enclose(20, 4 << 30)

def held(attack):
    try:
        return f"got {{attack()!r}}"
    except (OSError, ImportError) as error:
        return "held"

def tcp():
    socket.socket().connect(("127.0.0.1", {port}))

for name, attack in {{
    "read": lambda: open({secret!r}).read(),
    "passwords": lambda: open("/etc/passwd").read(),
    "list": lambda: os.listdir({folder!r}),
    "write": lambda: open({folder!r} + "/new", "w"),
    "environment": lambda: open("/proc/self/environ").read(),
    "connect": tcp,
    "fork": os.fork,
    "exec": lambda: os.execv("/bin/true", ["true"]),
    "kill": lambda: os.kill({pid}, 0),
    "root": lambda: os.setuid(0) or "root" if os.getuid() else None,
    "grow": lambda: os.write(os.open("/tmp/x", os.O_CREAT | os.O_WRONLY), b"x" * (1 << 16)),
}}.items():
    if os.getuid() == 0 and name == "root":
        continue
    os.write(1, f"{{name}}: {{held(attack)}}\\n".encode())
"""


@pytest.fixture(params=["parquet", "file", "stream"])
def many_rows(tmp_path, request):
    """More rows than a pipe holds, so that the parser process waits for its reader."""
    table = pyarrow.table({"a": ["x" * 1000] * 4096, "b": list(range(4096))})
    path = tmp_path / "table"
    if request.param == "parquet":
        parquet.write_table(table, path, row_group_size=64)
        return path
    opened = ipc.new_file if request.param == "file" else ipc.new_stream
    with opened(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=64)
    return path


def test_a_table_is_parsed_by_an_isolated_process(many_rows):
    rows = rows_of(many_rows)
    assert next(rows).data == {"a": "x" * 1000, "b": 0}
    readers = [
        one for one in psutil.Process().children(recursive=True)
        if any("isolated_reader" in word for word in one.cmdline())
    ]  # fmt: skip
    inner = readers[-1]
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{inner.pid}/status").read_text().splitlines()
    )
    assert {name: status[name].strip() for name in ("Seccomp", "NoNewPrivs", "CapEff")} == {
        "Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0" * 16,
    }  # fmt: skip
    limits = Path(f"/proc/{inner.pid}/limits").read_text()
    assert "Max file size             0 " in limits and "Max open files            16" in limits
    assert len(list(rows)) == 4095
    eventually(lambda: all(map(has_ended, readers)), "the reader to end")


def test_closing_the_rows_ends_the_reader_process(many_rows):
    rows = rows_of(many_rows)
    next(rows)
    (reader, *_) = [
        one
        for one in psutil.Process().children()
        if any("isolated_reader" in w for w in one.cmdline())
    ]
    rows.close()
    eventually(lambda: has_ended(reader), "the reader to end")


def test_code_that_takes_over_the_reader_finds_nothing(tmp_path):
    """Simulates a fault in the parser that lets a file's author run code there."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    listener = socket.create_server(("127.0.0.1", 0))
    program = ATTACKS.format(
        reader=str(READER), secret=str(secret), folder=str(tmp_path),
        port=listener.getsockname()[1], pid=psutil.Process().pid,
    )  # fmt: skip
    with listener:
        completed = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60 * patience()
        )
    lines = dict(line.split(": ", 1) for line in completed.stdout.splitlines())
    assert len(lines) >= 10, completed.stderr
    lines.pop("grow") if lines["grow"].startswith("held") else None
    assert set(lines.values()) == {"held"}, lines


@pytest.mark.parametrize("start", [b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff"])
def test_a_file_that_only_begins_like_a_table_is_refused_by_name(tmp_path, start):
    path = tmp_path / "broken"
    path.write_bytes(start + b"nonsense" * 100)
    with pytest.raises(DatasetError, match=r"broken.*cannot be read"):
        list(rows_of(path))


MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 1, 250_000)
KINDS = {
    "decimal": (pyarrow.decimal128(10, 3), Decimal("12.340"), "12.340"),
    "date": (pyarrow.date32(), MOMENT.date(), "2024-02-29"),
    "time": (pyarrow.time64("us"), MOMENT.time(), "12:30:01.250000"),
    "span": (pyarrow.duration("s"), datetime.timedelta(days=1, seconds=2), "P1DT2S"),
    "stamp": (pyarrow.timestamp("us"), MOMENT, "2024-02-29T12:30:01.250000"),
    "zone": (pyarrow.timestamp("us", "Europe/Berlin"), MOMENT, "2024-02-29T12:30:01.250000Z"),
    "offset": (
        pyarrow.timestamp("us", "+02:00"), MOMENT, "2024-02-29T14:30:01.250000+02:00"
    ),
    "bytes": (pyarrow.binary(), b"\xff", "ff"),
    "nested": (
        pyarrow.struct({"a": pyarrow.list_(pyarrow.decimal128(3, 1)),
                        "b": pyarrow.map_(pyarrow.string(), pyarrow.timestamp("s", "UTC"))}),
        {"a": [Decimal("1.5"), None], "b": [("k", datetime.datetime(2024, 1, 1))]},
        {"a": ["1.5", None], "b": [["k", "2024-01-01T00:00:00Z"]]},
    ),
}  # fmt: skip
"""Type, value, and its form on arrival (bytes as hex, which JSON can hold)."""
RIGHT = [{name: arrives for name, (*_, arrives) in KINDS.items()}, dict.fromkeys(KINDS)]
READS = """
import json, os, pathlib, resource, sys
folder, tier, attacks = json.load(sys.stdin)
if tier == "restricted":
    from tests.engine.sandbox.attacked import refuse_unshare
    refuse_unshare()
from engine.problems.containers import rows_of
from engine.problems.errors import DatasetError
pid = os.fork()
if not pid:
    try:
        exec(attacks)
    finally:
        os._exit(0)
os.waitpid(pid, 0)
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
found = {}
for path in sorted(pathlib.Path(folder).iterdir()):
    try:
        found[path.name] = [row.data for row in rows_of(path)]
    except (DatasetError, MemoryError) as error:
        found[path.name] = f"{type(error).__name__}: {error}"
print()
print(json.dumps(found, default=lambda value: value.hex()))
"""


@pytest.fixture(scope="module")
def folder():
    """World-readable files: good, broken and hostile ones."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        table = pyarrow.table({
            name: pyarrow.array([value, None], kind) for name, (kind, value, _) in KINDS.items()
        })  # fmt: skip
        parquet.write_table(table, folder / "good.parquet")
        with ipc.new_stream(folder / "good.arrow", table.schema) as writer:
            writer.write_table(table)
        data = (folder / "good.arrow").read_bytes()
        (folder / "cut.arrow").write_bytes(data[: len(data) // 2])
        data = bytearray((folder / "good.parquet").read_bytes())
        data[4 : len(data) // 3] = bytes(len(data) // 3 - 4)
        (folder / "zeros.parquet").write_bytes(data)
        # A small file whose dictionary has one text, so each row becomes 100 MiB.
        bomb = pyarrow.array(["x" * (100 << 20)]).dictionary_encode()
        many = pyarrow.DictionaryArray.from_arrays([0] * 64, bomb.dictionary)
        parquet.write_table(pyarrow.table({"a": many}), folder / "bomb.parquet", compression="zstd")
        far = pyarrow.table({"a": pyarrow.array([10**15], pyarrow.timestamp("s"))})
        with ipc.new_stream(folder / "far.arrow", far.schema) as writer:
            writer.write_table(far)
        assert (folder / "bomb.parquet").stat().st_size < 1 << 20
        for path in folder.iterdir():
            path.chmod(0o644)
        yield folder


@pytest.fixture(scope="module")
def users_python():
    """An interpreter that a normal user may start, with the packages of this one."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        packages = top / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
        (top / "bin").mkdir()
        packages.mkdir(parents=True)
        (packages / "all.pth").write_text(PACKAGES.replace(os.pathsep, "\n") + "\n")
        (top / "pyvenv.cfg").write_text(f"home = {Path(python or sys.executable).parent}\n")
        (top / "bin" / "python").symlink_to(python or sys.executable)
        for path in (top, *top.rglob("*")):
            path.chmod(0o755)
        start = [*NOBODY, str(top / "bin" / "python")]
        tried = subprocess.run([*start, "-c", "import pyarrow, msgspec"], capture_output=True)
        if tried.returncode:
            pytest.skip("no interpreter of this version that a normal user may start")
        yield start


@pytest.fixture(
    scope="module",
    params=[SERVICES[0], *(pytest.param(one, marks=pytest.mark.large) for one in SERVICES[1:])],
    ids=" as ".join,
)
def read(request, folder):
    """Outcome of each file, and of the attacks by a compromised parser, per tier and user."""
    tier, who = request.param
    start = [sys.executable]
    if who == "user" and os.getuid() == 0:
        start = request.getfixturevalue("users_python")
    elif who == "root" and os.getuid() != 0:
        pytest.skip("the tests are run as a normal user")
    listener = socket.create_server(("127.0.0.1", 0))
    attacks = ATTACKS.format(
        reader=str(READER), secret=str(folder / "good.arrow"), folder=str(folder),
        port=listener.getsockname()[1], pid=os.getpid(),
    )  # fmt: skip
    with listener:
        done = subprocess.run(
            [*start, "-c", READS],
            input=json.dumps([str(folder), tier, attacks]), cwd=READER.parents[2],
            capture_output=True, text=True, timeout=240 * patience(),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *attacked, _, actual = done.stdout.splitlines()
    return json.loads(actual), dict(line.split(": ", 1) for line in attacked)


def test_decimals_times_and_nested_values_arrive_as_text(read):
    outcomes, _ = read
    assert outcomes["good.parquet"] == outcomes["good.arrow"] == RIGHT


def test_broken_and_hostile_tables_are_refused_with_their_name(read):
    outcomes, _ = read
    for name in ("cut.arrow", "zeros.parquet", "far.arrow"):
        assert f"{name}: file = " in outcomes[name] and "cannot be read: " in outcomes[name], (
            outcomes[name]
        )
        assert "ended early" not in outcomes[name], outcomes[name]
    assert "outside the years 1 to 9999" in outcomes["far.arrow"]


def test_a_small_table_of_huge_rows_ends_for_want_of_memory(read):
    outcomes, _ = read
    assert outcomes["bomb.parquet"].startswith("MemoryError: "), outcomes["bomb.parquet"]
    assert "memory" in outcomes["bomb.parquet"].partition(": ")[2], outcomes["bomb.parquet"]


def test_code_in_the_parser_process_reaches_no_data(read):
    _, lines = read
    assert len(lines) >= 10
    lines.pop("grow") if lines["grow"].startswith("held") else None
    assert set(lines.values()) == {"held"}, lines
