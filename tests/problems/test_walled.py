"""Parquet and Arrow are parsed behind the walls of the sandbox, whoever reads them."""

import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pyarrow
import pytest
from pyarrow import ipc, parquet

from engine.problems.containers import columns, rows_of
from engine.problems.errors import DatasetError
from tests.waiting import eventually
from workers.processes import is_gone

READER = Path(columns.__file__).parent
ATTACKS = """
import os, socket, sys
sys.path.insert(0, {reader!r})
import walled
walled.enclose(20, 4 << 30)

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
    """More rows than a pipe holds, so that their reader waits for whoever asks."""
    table = pyarrow.table({"a": ["x" * 1000] * 4096, "b": list(range(4096))})
    path = tmp_path / "table"
    if request.param == "parquet":
        parquet.write_table(table, path, row_group_size=64)
        return path
    opened = ipc.new_file if request.param == "file" else ipc.new_stream
    with opened(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=64)
    return path


def test_a_table_is_parsed_by_a_process_behind_walls(many_rows):
    rows = rows_of(many_rows)
    assert next(rows).data == {"a": "x" * 1000, "b": 0}
    readers = [
        one for one in psutil.Process().children(recursive=True)
        if any("walled" in word for word in one.cmdline())
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
    eventually(lambda: all(map(is_gone, readers)), "the reader to end", 10)


def test_who_stops_reading_leaves_no_reader(many_rows):
    rows = rows_of(many_rows)
    next(rows)
    (reader, *_) = [
        one for one in psutil.Process().children() if any("walled" in w for w in one.cmdline())
    ]
    rows.close()
    eventually(lambda: is_gone(reader), "the reader to end", 10)


def test_what_takes_over_the_reader_finds_nothing(tmp_path):
    """As a fault in the parser would let a file's author run code there."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    listener = socket.create_server(("127.0.0.1", 0))
    program = ATTACKS.format(
        reader=str(READER), secret=str(secret), folder=str(tmp_path),
        port=listener.getsockname()[1], pid=psutil.Process().pid,
    )  # fmt: skip
    with listener:
        told = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
        )
    lines = dict(line.split(": ", 1) for line in told.stdout.splitlines())
    assert len(lines) >= 10, told.stderr
    lines.pop("grow") if lines["grow"].startswith("held") else None
    assert set(lines.values()) == {"held"}, lines


@pytest.mark.parametrize("start", [b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff"])
def test_what_only_begins_like_a_table_is_refused_with_its_name(tmp_path, start):
    path = tmp_path / "broken"
    path.write_bytes(start + b"nonsense" * 100)
    with pytest.raises(DatasetError, match=r"broken.*cannot be read"):
        list(rows_of(path))
