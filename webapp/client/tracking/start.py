"""Start of a run: its identity, its spool, and its attachment to the server.

Waits: `init` in mode online waits for the server's answer, at most `sender.REQUEST_SECONDS`; a
server that does not answer is retried in the background.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
import string
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from webapp.client import login
from webapp.client.client import Grove
from webapp.client.tracking import spool as spools
from webapp.client.tracking import sync, values
from webapp.client.tracking.errors import Error
from webapp.client.tracking.runs import Run
from webapp.client.tracking.sender import Background, Sender, Undelivered, reason_of, say
from webapp.client.tracking.spool import Header, Spool
from webapp.client.types import Refused

DEFAULT_DIRECTORY = "grove-logs"
MODES = ("online", "offline", "disabled")
_FORMER_MODES = {"run": "online", "dryrun": "offline"}
"""W&B's older names."""
RESUMES = ("allow", "must", "never", "auto")
_KEY = frozenset(string.ascii_letters + string.digits + "_.:-")
_LONGEST_KEY, _LONGEST_OF_WANDB = 64, 128
_NOT_OF_WANDB = frozenset("/\\#?%")
_live: set[Path] = set()


class InitRefused(Error):
    """Raised by `init` if the run cannot be logged; the message names the value and the remedy."""


def start(
    project: str | int | None, entity: str | None, name: str | None, key: str | None,
    config: Any, tags: Sequence[str] | None, group: str | None, notes: str | None,
    directory: str | os.PathLike[str] | None, mode: str | None,
    resume: str | bool | None, alerts_after: float = 0.0,
) -> Run:  # fmt: skip
    """Returns a new run, or a resumed one. Arguments as of `grove.init`; what happened until
    `alerts_after`, in Unix seconds, raises no alert.

    Raises:
        InitRefused: an argument is invalid, or the server refuses.
    """
    mode = _mode(mode)
    if mode == "disabled":
        disabled = Run(None, None, key=key or "disabled")
        disabled.config.update(config)
        return disabled
    folder = Path(directory or os.environ.get("GROVE_DIR") or DEFAULT_DIRECTORY)
    project = str(project if project is not None else os.environ.get("GROVE_PROJECT", ""))
    given, policy = _identity(key, resume, folder, project)
    key = usable_id(given or new_key())
    client = _client() if mode == "online" else None
    _end_former(folder, key, client)
    name = values.text_of(
        " ".join((name or os.environ.get("GROVE_NAME") or given or key).split()), 200
    )
    header = Header(
        session=str(uuid.uuid4()), key=key, project=project, entity=entity or "", name=name,
        group=(group or "")[:128], resume=policy, host=socket.gethostname()[:128],
        alerts_after=alerts_after,
    )  # fmt: skip
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    spool = Spool.create(folder, header, stamp)
    run = _begun(spool, client)
    live = spool.path.resolve()
    _live.add(live)
    run.after_end(lambda: _live.discard(live))
    run.begin()
    if spool.problem:
        say(f"{folder} cannot be written ({spool.problem}): records wait in memory alone")
    run.config.update(config)
    run.describe(tags=tags, notes=notes)
    return run


def _mode(mode: str | None) -> str:
    mode = mode or os.environ.get("GROVE_MODE") or "online"
    if mode == "shared":
        raise InitRefused(
            "mode = 'shared': one process logs to a run; give each its own id and a common group"
        )
    return _one_of("mode", _FORMER_MODES.get(mode, mode), MODES)


def _identity(
    key: str | None, resume: str | bool | None, folder: Path, project: str
) -> tuple[str | None, str]:
    """Returns the id of the run to resume or create, None for a new one, and how it may resume:
    `allow`, `must` or `never`."""
    policy = _policy(resume if resume is not None else os.environ.get("GROVE_RESUME"))
    key = key or os.environ.get("GROVE_RUN_ID") or None
    if policy == "auto":
        return key or _interrupted(folder, project), "allow"
    if policy == "must" and not key:
        raise InitRefused("resume = 'must': give the id of the run to resume")
    return key, policy


def _begun(spool: Spool, client: Grove | None) -> Run:
    """Attaches the process, if there is a server that answers, and starts to send."""
    if client is None:
        say(f"offline: records are kept in {spool.path.parent}")
        return Run(spool, None)
    sender = Sender(spool, client)
    step, url, resumed = 0, "", False
    try:
        attached = sender.attach()
        sender.report()  # a token that may not send events is refused now
        step = attached.run["step"] + (attached.run["head_seq"] > 0)
        url, resumed = _address(client, attached.run["id"]), not attached.created
        say(f"logging to {url}")
    except (Refused, Undelivered) as error:
        if not _may_pass(error):
            spool.path.unlink(missing_ok=True)
            spool.close()
            raise InitRefused(reason_of(error)) from None
        say(f"{reason_of(error)}; records are kept in {spool.path.parent}, and sent later")
    except (httpx.HTTPError, OSError, ValueError) as error:
        say(f"{reason_of(error)}; records are kept in {spool.path.parent}, and sent later")

    def warn(reason: str) -> None:
        say(f"{reason}; records are kept in {spool.path.parent}, and sent later")

    def attached_later() -> None:
        if not run.url and sender.attached:
            run.url = _address(client, sender.run_id)

    background = Background(sender, warn, attached_later)
    run = Run(spool, background, step=step, url=url, resumed=resumed)
    background.start()
    return run


def _may_pass(error: Exception) -> bool:
    return isinstance(error, Refused) and (
        error.problem.status >= 500 or error.problem.status in (408, 429)
    )


def _client() -> Grove:
    try:
        address, token = login.credentials()
    except login.NotLoggedIn as error:
        raise InitRefused(f"{error}; or give mode='offline' or mode='disabled'") from None
    except (OSError, json.JSONDecodeError) as error:
        raise InitRefused(f"{login.path()}: it cannot be read: {error}") from None
    return Grove(address, token)


def _address(client: Grove, run_id: str) -> str:
    base = str(client._http.base_url).removesuffix("/").removesuffix("/api/v1")
    return f"{base}/runs/{run_id}/"


def _end_former(folder: Path, key: str, client: Grove | None) -> None:
    """Ends and sends what a dead process of this run left in the folder, so that this one may
    continue at once.

    Raises:
        InitRefused: a process of this machine that logs to the run is alive.
    """
    for path in _spools_of(folder, key):
        try:
            former = Spool.open_dead(path)
        except spools.Occupied as error:
            raise InitRefused(f"id = {key!r}: {error}; finish it, or give another id") from None
        except (OSError, ValueError) as error:
            say(f"{path} is left as it is: {error}")
            continue
        sync.end(former)
        try:
            if client is not None:
                sync.send(former, client)
        except (Refused, Undelivered, httpx.HTTPError, OSError, ValueError) as error:
            say(f"{path} is not sent yet: {reason_of(error)}")
        finally:
            former.close()


def _spools_of(folder: Path, key: str) -> list[Path]:
    own = [path for path in spools.unfinished(folder) if f"-{key}-" in path.name]
    for path in own:
        if path.resolve() in _live:
            raise InitRefused(f"id = {key!r}: this process logs to it already; finish that run")
    return own


def _interrupted(folder: Path, project: str) -> str | None:
    """Returns the id of the newest run of the folder that did not end; None without one."""
    for path in reversed(spools.unfinished(folder)):
        if path.resolve() in _live:
            continue
        try:
            former = Spool.open_dead(path)
        except (spools.Occupied, OSError, ValueError):
            continue
        header, is_over = former.header, sync.has_ended(former)
        former.close()
        if not is_over and header.project == project:
            return header.key
    return None


def _policy(resume: str | bool | None) -> str:
    if resume is None or resume is False:
        return "never"
    return "auto" if resume is True else _one_of("resume", resume, RESUMES)


def _one_of(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise InitRefused(f"{name} = {value!r}: give one of {', '.join(choices)}")
    return value


def usable_id(key: str) -> str:
    """Returns the id of a run as the server takes it. One that W&B takes, up to 128 characters and
    with others, becomes its beginning and its hash, always the same: trainers make ids of names.

    Raises:
        InitRefused: W&B would not take it, either.
    """
    is_ours = len(key) <= _LONGEST_KEY and _KEY.issuperset(key)
    is_theirs = 1 <= len(key) <= _LONGEST_OF_WANDB and not _NOT_OF_WANDB.intersection(key)
    if is_ours or not (is_theirs and key.isprintable()):
        return checked_id(key)
    digest = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:8]
    plain = "".join(one if one in _KEY else "-" for one in key)[: _LONGEST_KEY - 9]
    made = f"{plain}-{digest}"
    say(f"id = {key!r}: the run's id here is {made}")
    return made


def checked_id(key: str) -> str:
    """Returns the id of a run. Raises `InitRefused` for one that the server would not take."""
    if not 1 <= len(key) <= _LONGEST_KEY or not _KEY.issuperset(key):
        raise InitRefused(f"id = {key!r}: give 1 to 64 letters, digits and any of _ . : -")
    return key


def new_key(length: int = 8) -> str:
    """Returns a new id of a run."""
    letters = string.ascii_lowercase + string.digits
    return "".join(secrets.choice(letters) for _ in range(length))
