"""Isolated reader of one Parquet or Arrow file, a process in the sandbox's isolation. Started by
path, as `python isolated_reader.py COLUMNS CPU_SECONDS MEMORY_BYTES < FILE`; writes its rows to
stdout.

Only here does pyarrow's C++ code read an untrusted file. Invariant: before a byte of the file is
read, this process has no other file but its output, no network, no access to other processes, no
privileges of its account, and limits of memory and time: all isolation that the host allows
(`engine.sandbox.guest.isolation`). All modules are loaded before, because none can be loaded after.

Output: msgpack messages, each after its length (8 bytes, little-endian): {"rows": [...]}, and last
{"end": ""}, {"error": REASON} or {"memory": REASON}. Numbers, strings, bytes, lists and dicts are
sent as such, a map as its list of [key, value]; decimals, dates, times and durations as text
(`12.340`, `2024-02-29`, `2024-02-29T12:30:01.250000`, `P1DT2S`); times of a named zone in UTC
(`...Z`), those with an offset keep it (`...+02:00`).
"""

# ruff: noqa: PTH100, PTH118, PTH120
# Paths as the sandbox's modules use them.

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

import isolation  # noqa: E402
import msgspec  # noqa: E402
import pyarrow  # noqa: E402
from pyarrow import ipc, parquet  # noqa: E402

BATCH_ROWS = 32
RESERVE_BYTES = 8 << 20
PARQUET, ARROW_FILE = b"PAR1", b"ARROW1"
_SLOT = 200_000  # above those of programs, whose accounts differ


def main() -> None:
    fields, cpu_seconds, memory_bytes = sys.argv[1:]
    names = json.loads(fields)
    pyarrow.set_cpu_count(1)
    enclose(float(cpu_seconds), int(memory_bytes))
    try:
        for batch in batches(os.fdopen(0, "rb"), names):
            send({"rows": rows(batch)})
        send({"end": ""})
    except MemoryError as error:  # pyarrow's own is a subclass
        send({"memory": str(error) or "its rows take more memory than their reader may"})
    except OverflowError:
        send({"error": "a date or time lies outside the years 1 to 9999; write it as text"})
    except Exception as error:  # anything that a broken or hostile file causes in pyarrow
        send({"error": (str(error) or type(error).__name__).splitlines()[0]})


def enclose(cpu_seconds: float, memory_bytes: int) -> None:
    """Loads what reading needs, then enters all isolation that the host allows."""
    warm_up()
    null = os.open(os.devnull, os.O_RDWR)
    for reserved in (isolation.LAST_NUMBER, isolation.RULES):  # reserved by `isolation`
        os.dup2(null, reserved)
    active = isolation.enter(
        _SLOT + os.getpid(), os.path.dirname(os.__file__), become_init, lambda: None
    )
    active.renew()
    isolation.confine(active, cpu_seconds, memory_bytes, 0, RESERVE_BYTES)
    os.closerange(3, isolation.RULES + 1)


def batches(file: IO[bytes], fields: list[str] | None) -> Iterator[Any]:
    """Yields batches of rows with the `fields` columns (None: all)."""
    start = file.read(8)
    file.seek(0)
    if start.startswith(PARQUET):
        table = parquet.ParquetFile(file)
        names = [n for n in table.schema_arrow.names if fields is None or n in fields]
        yield from table.iter_batches(BATCH_ROWS, columns=names, use_threads=False)
        return
    if start.startswith(ARROW_FILE):
        reader = ipc.open_file(file)
        record_batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        record_batches = iter(ipc.open_stream(file))
    for batch in record_batches:
        names = [n for n in batch.schema.names if fields is None or n in fields]
        chosen = batch.select(names)
        for position in range(0, chosen.num_rows, BATCH_ROWS):
            yield chosen.slice(position, BATCH_ROWS)


def rows(batch: Any) -> list[Any]:
    """Returns the rows of a batch; in a batch with zoned timestamps, dates and times are converted
    to text, since msgpack would send zoned timestamps as its own type."""
    values = batch.to_pylist()
    if any(map(has_zone, batch.schema.types)):
        return msgspec.to_builtins(values, builtin_types=(bytes,), enc_hook=as_text)
    return values


def has_zone(kind: Any) -> bool:
    """Returns whether values of a type are, or contain, timestamps with a time zone."""
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    return getattr(kind, "tz", None) is not None or any(map(has_zone, inner))


def as_text(value: Any) -> str:
    """Returns the text of a value without a msgpack type; pandas timestamps to the nanosecond."""
    if not isinstance(value, datetime.datetime):
        return str(value)
    return value.isoformat().replace("+00:00", "Z")


def warm_up() -> None:
    """Loads what pyarrow loads at its first file of each kind, with files made here."""
    nested = [{"d": 1.5, "e": decimal.Decimal("1.5")}, None]
    columns: dict[str, list[Any]] = {"a": ["x", None], "b": [[1], None], "c": nested}
    pyarrow.table(columns)  # imports pandas, if it is installed
    use_utc_only()
    times = pyarrow.array([datetime.datetime(2000, 1, 1), None], pyarrow.timestamp("ns"))
    zoned = times.cast(pyarrow.timestamp("us", "Europe/Berlin"))
    table = pyarrow.table(columns | {"f": times, "g": zoned})
    files = [io.BytesIO() for _ in range(3)]
    parquet.write_table(table, files[0])
    for file, opened in ((files[1], ipc.new_file), (files[2], ipc.new_stream)):
        with opened(file, table.schema) as writer:
            writer.write_table(table)
    for file in files:
        file.seek(0)
        for batch in batches(file, None):
            msgspec.msgpack.encode(rows(batch), enc_hook=as_text)


def use_utc_only() -> None:
    """Replaces every time zone by UTC: zone files cannot be read inside the isolation."""
    zoneinfo.ZoneInfo = lambda _: datetime.UTC  # type: ignore[assignment,misc]
    if pytz := sys.modules.get("pytz"):
        pytz.timezone = zoneinfo.ZoneInfo  # type: ignore[attr-defined]


def become_init() -> None:
    """Continues as process 1 of the new pid namespace; the parent exits when that one does."""
    pid = os.fork()
    if pid == 0:
        return
    os.closerange(0, 3)  # the reader must see end of file when process 1 ends
    _, status = os.waitpid(pid, 0)
    os._exit(1 if status else 0)


def send(message: dict[str, Any]) -> None:
    data = msgspec.msgpack.encode(message, enc_hook=as_text)
    data = struct.pack("<Q", len(data)) + data
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
