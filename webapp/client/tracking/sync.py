"""Spools that are sent later: those of offline runs, and of processes that died (`grove sync`)."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

import httpx
import msgspec

from webapp.client.client import Grove
from webapp.client.tracking import spool as spools
from webapp.client.tracking.sender import Sender, Undelivered, reason_of
from webapp.client.tracking.spool import Position, Spool
from webapp.client.types import Refused

CUT_OFF = "the program ended without finish()"


class _Line(msgspec.Struct):
    time: float
    kind: str


def has_ended(spool: Spool) -> bool:
    """Returns whether the last lines say that the run has ended."""
    last = deque(_all_lines(spool), maxlen=1)
    if not last:
        return False
    line = msgspec.json.decode(last[0])
    return line["kind"] == "run.state" and line["payload"]["state"] != "running"


def end(spool: Spool) -> None:
    """Records that the spool's process died, unless it said how its run ended."""
    if has_ended(spool):
        return
    last = deque(_all_lines(spool), maxlen=1)
    at = msgspec.json.decode(last[0], type=_Line).time if last else time.time()
    for kind, payload in (
        ("error", {"message": CUT_OFF}),
        ("run.state", {"state": "failed", "reason": CUT_OFF}),
    ):
        line = {"time": at, "kind": kind, "tree": None, "node": None, "payload": payload}
        spool.append(msgspec.json.encode(line))


def send(spool: Spool, grove: Grove) -> str:
    """Sends all lines of a dead process's spool and returns the run's id; the file is renamed once
    the server has them all. Raises `Refused`, `Undelivered`, `httpx.TransportError`."""
    sender = Sender(spool, grove)
    sender.send_all()
    spool.close(sent=True)
    return sender.run_id


def sync(grove: Grove, directory: Path) -> list[str]:
    """Sends every spool below a directory, or the one that is named; prints each result, and
    returns what could not be sent.

    Raises:
        FileNotFoundError: there is no such directory.
    """
    if not directory.exists():
        raise FileNotFoundError(f"{directory}: there is no such file or directory")
    paths = [directory] if directory.is_file() else spools.unfinished(directory)
    failed = []
    for path in paths:
        try:
            spool = Spool.open_dead(path)
        except spools.Occupied as error:
            print(f"{path}: left out: {error}")
            continue
        except (OSError, ValueError) as error:
            failed.append(f"{path}: {error}")
            continue
        try:
            end(spool)
            run_id = send(spool, grove)
            print(f"{path}: {spool.lines} records, run {run_id}")
        except httpx.TransportError:
            raise
        except (Refused, Undelivered, OSError, ValueError) as error:
            failed.append(f"{path}: {reason_of(error)}")
        finally:
            spool.close()
    if not paths:
        print(f"{directory}: nothing to send")
    return failed


def _all_lines(spool: Spool) -> list[bytes]:
    lines: list[bytes] = []
    position = Position()
    while batch := spool.read(position, 10_000, 2**24):
        lines = batch[-1:]  # the last one counts
    return lines
