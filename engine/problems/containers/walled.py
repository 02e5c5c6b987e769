"""Reads one Parquet or Arrow file behind the walls of the sandbox. Started by path, as
`python walled.py COLUMNS CPU_SECONDS MEMORY_BYTES < FILE`; its rows leave by stdout.

A file of strangers meets pyarrow's C++ here and nowhere else. Invariant: before a byte of the file
is read this process has no file but it and its output, no network, no other process, no right of
its account, and limits of memory and time: all walls that the host allows
(`engine.sandbox.guest.walls`). All modules are loaded before, because afterwards none is there to
load.

Output: messages of msgpack, each after its length (8 bytes, little-endian): {"rows": [...]}, at
last {"end": ""}, {"error": REASON} or {"memory": REASON}. Numbers, texts, bytes, lists and dicts
come as such, a map as its list of [key, value]; decimals, dates, times and spans as text (`12.340`,
`2024-02-29`, `2024-02-29T12:30:01.250000`, `P1DT2S`); times of a named zone in UTC (`...Z`), those
of an offset with it (`...+02:00`).
"""

# ruff: noqa: PTH100, PTH118, PTH120
# Paths as the sandbox's modules take them.

import datetime
import decimal
import io
import json
import os
import struct
import sys
import zoneinfo
from collections.abc import Iterator
from typing import IO, Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(HERE)), "sandbox", "guest"))

import msgspec  # noqa: E402
import pyarrow  # noqa: E402
import walls  # noqa: E402
from pyarrow import ipc, parquet  # noqa: E402

BATCH_ROWS = 32
RESERVE_BYTES = 8 << 20
PARQUET, ARROW_FILE = b"PAR1", b"ARROW1"
_SLOT = 200_000  # above those of programs: their accounts are others


def main() -> None:
    wanted, cpu_seconds, memory_bytes = sys.argv[1:]
    columns = json.loads(wanted)
    pyarrow.set_cpu_count(1)
    enclose(float(cpu_seconds), int(memory_bytes))
    try:
        for batch in batches(os.fdopen(0, "rb"), columns):
            send({"rows": rows(batch)})
        send({"end": ""})
    except MemoryError as error:  # pyarrow's own is one
        send({"memory": str(error) or "its rows take more memory than their reader may"})
    except OverflowError:
        send({"error": "a date or time lies outside the years 1 to 9999; write it as text"})
    except Exception as error:  # whatever a broken or hostile file makes of pyarrow
        send({"error": (str(error) or type(error).__name__).splitlines()[0]})


def enclose(cpu_seconds: float, memory_bytes: int) -> None:
    """Load what reading takes, then put up all walls that the host allows."""
    warm_up()
    null = os.open(os.devnull, os.O_RDWR)
    for reserved in (walls.LAST_NUMBER, walls.RULES):  # which the walls keep for their own
        os.dup2(null, reserved)
    inside = walls.enter(
        _SLOT + os.getpid(), os.path.dirname(os.__file__), become_init, lambda: None
    )
    inside.renew()
    walls.confine(inside, cpu_seconds, memory_bytes, 0, RESERVE_BYTES)
    os.closerange(3, walls.RULES + 1)


def batches(file: IO[bytes], wanted: list[str] | None) -> Iterator[Any]:
    """Some rows at a time, of the columns that are wanted (None: all)."""
    start = file.read(8)
    file.seek(0)
    if start.startswith(PARQUET):
        table = parquet.ParquetFile(file)
        names = [n for n in table.schema_arrow.names if wanted is None or n in wanted]
        yield from table.iter_batches(BATCH_ROWS, columns=names, use_threads=False)
        return
    if start.startswith(ARROW_FILE):
        reader = ipc.open_file(file)
        found = (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        found = iter(ipc.open_stream(file))
    for batch in found:
        names = [n for n in batch.schema.names if wanted is None or n in wanted]
        chosen = batch.select(names)
        for position in range(0, chosen.num_rows, BATCH_ROWS):
            yield chosen.slice(position, BATCH_ROWS)


def rows(batch: Any) -> list[Any]:
    """The rows of a batch; where it has moments with a zone, these are text already, which msgpack
    would send as moments."""
    found = batch.to_pylist()
    if any(map(has_zone, batch.schema.types)):
        return msgspec.to_builtins(found, builtin_types=(bytes,), enc_hook=as_text)
    return found


def has_zone(kind: Any) -> bool:
    """Whether values of a type are, or hold, moments with a time zone."""
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    return getattr(kind, "tz", None) is not None or any(map(has_zone, inner))


def as_text(value: Any) -> str:
    """The text of what msgpack has no kind for: moments of pandas, by the nanosecond, in full."""
    if not isinstance(value, datetime.datetime):
        return str(value)
    return value.isoformat().replace("+00:00", "Z")


def warm_up() -> None:
    """Load what pyarrow loads at its first file, of each kind; of our own making."""
    nested = [{"d": 1.5, "e": decimal.Decimal("1.5")}, None]
    columns: dict[str, list[Any]] = {"a": ["x", None], "b": [[1], None], "c": nested}
    pyarrow.table(columns)  # takes pandas along, if there is one
    forget_zones()
    times = pyarrow.array([datetime.datetime(2000, 1, 1), None], pyarrow.timestamp("ns"))
    zoned = times.cast(pyarrow.timestamp("us", "Europe/Berlin"))
    table = pyarrow.table(columns | {"f": times, "g": zoned})
    made = [io.BytesIO() for _ in range(3)]
    parquet.write_table(table, made[0])
    for file, opened in ((made[1], ipc.new_file), (made[2], ipc.new_stream)):
        with opened(file, table.schema) as writer:
            writer.write_table(table)
    for file in made:
        file.seek(0)
        for batch in batches(file, None):
            msgspec.msgpack.encode(rows(batch), enc_hook=as_text)


def forget_zones() -> None:
    """Have every time zone be UTC: the files of zones cannot be read behind the walls."""
    zoneinfo.ZoneInfo = lambda _: datetime.UTC  # type: ignore[assignment,misc]
    if pytz := sys.modules.get("pytz"):
        pytz.timezone = zoneinfo.ZoneInfo  # type: ignore[attr-defined]


def become_init() -> None:
    """Go on as process 1 of the new pid namespace; this one ends as that one does."""
    pid = os.fork()
    if pid == 0:
        return
    os.closerange(0, 3)  # who reads must see the end when process 1 ends
    _, status = os.waitpid(pid, 0)
    os._exit(1 if status else 0)


def send(message: dict[str, Any]) -> None:
    data = msgspec.msgpack.encode(message, enc_hook=as_text)
    data = struct.pack("<Q", len(data)) + data
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
