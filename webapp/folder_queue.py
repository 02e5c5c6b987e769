"""The queue of one machine: a folder with a file per message, as kombu's `filesystem` transport has
it, for processes that may be killed between any two system calls.

Invariants:
- A message has its name once it is whole; the process that removes the file has taken it.
- A file that is no message (of a full disk, or of a machine that lost power) is removed and logged.
  Nothing is lost by it: a message only says "look at this run" (`webapp.celery`).
- Which queues there are is known to each process, since every sender declares its own. kombu keeps
  it in files, which are empty while they are written, and stay so if the writer is killed: then no
  process can send or take a message.
"""

from __future__ import annotations

import logging
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, filesystem, virtual
from kombu.utils.json import dumps, loads

logger = logging.getLogger(__name__)

DRAFT = ".draft"
"""Ends the name of a file that is being written; no queue's name ends so."""


class Channel(filesystem.Channel):
    """kombu's channel with messages that are written and taken at once, and tables in memory."""

    supports_fanout = False

    def get_table(self, exchange: str) -> Any:
        return virtual.Channel.get_table(self, exchange)

    def _delete(self, queue: str, *arguments: Any, **options: Any) -> None:
        virtual.Channel._delete(self, queue, *arguments, **options)

    def _put(self, queue: str, payload: dict[str, Any], **_: Any) -> None:
        """Raises `OSError` if the folder cannot be written."""
        name = f"{round(time.monotonic() * 1000)}_{uuid.uuid4()}.{queue}.msg"
        draft = Path(self.data_folder_out, name + DRAFT)
        try:
            draft.write_bytes(dumps(payload).encode())
            draft.rename(draft.with_name(name))
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def _get(self, queue: str) -> dict[str, Any]:
        """Raises `Empty` if no message of the queue is left."""
        for file in sorted(Path(self.data_folder_in).iterdir()):
            if file.name.partition(".")[2] != f"{queue}.msg":
                continue
            try:
                content = file.read_bytes()
                file.unlink()
            except FileNotFoundError:
                continue  # another process took it
            try:
                return loads(content.decode())
            except ValueError:
                logger.warning("the queue's file %s is no message; it was removed", file)
        raise Empty


class Transport(filesystem.Transport):
    """Of addresses `filesystem://`, once `register` was called."""

    Channel = Channel
    global_state = virtual.BrokerState()


def register() -> None:
    """Makes this the transport of `filesystem://` in this process."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:{Transport.__name__}"
