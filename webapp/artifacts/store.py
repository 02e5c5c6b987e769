"""Store of the artifacts' bytes, behind Django's storage interface (`STORAGES["artifacts"]`).

Invariants:
- The only names in the store are `ab/abcd...`, made of a SHA-256 that was computed here.
- A name has the whole content or nothing: a file is staged, then moved to its path (a bucket
accepts an object whole or not at all). The same content is stored once.
- Storing and removing one content never overlap: both hold its advisory lock until they commit.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.files import File
from django.core.files.storage import Storage, storages
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import ProtectedError
from django.utils import timezone
from psycopg.errors import LockNotAvailable

from webapp.artifacts.models import Artifact
from webapp.artifacts.selectors import unreferenced

_SHA256 = re.compile(r"[0-9a-f]{64}")
_BLOCK = 1 << 20
_REMOVALS = int.from_bytes(hashlib.sha256(b"removal of artifacts").digest()[:8], signed=True)
"""Advisory lock: shared by each removal, exclusive to what needs all contents to stay."""


class WrongDigest(ValueError):
    """Raised if the content is not what was announced; `actual` is its SHA-256."""

    def __init__(self, actual: str):
        self.actual = actual
        super().__init__(f"the content has the SHA-256 {actual}")


class _Staged(File):
    """A whole file of ours; a file storage moves it, any other reads it."""

    def __init__(self, file: IO[bytes], path: Path):
        super().__init__(file)
        self._path = path

    def temporary_file_path(self) -> str:
        return str(self._path)


def storage() -> Storage:
    return storages["artifacts"]


def put(blocks: Iterable[bytes]) -> Artifact:
    """Stores the content of the blocks, of any size, read once and never held whole."""
    with _staging() as path:
        with path.open("wb") as file:
            for block in blocks:
                file.write(block)
        return put_file(path)


def put_file(path: Path, expected: str = "") -> Artifact:
    """Stores a whole file of ours, below `settings.UPLOADS_DIR`, by moving or removing it.

    Raises:
        WrongDigest: its SHA-256 is not the `expected` one; the file is still there.
        OSError: it cannot be read or stored; the file is still there.
    """
    with path.open("rb") as file:
        os.fsync(file.fileno())
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if expected not in ("", sha256):
        raise WrongDigest(sha256)
    with transaction.atomic():
        lock(sha256)
        size, now = path.stat().st_size, timezone.now()
        if not storage().exists(name_of(sha256)):
            _save(path, name_of(sha256))
        fresh = {"size": size, "last_put": now}
        artifact, _ = Artifact.objects.update_or_create(
            sha256=sha256, defaults={"last_put": now}, create_defaults=fresh
        )
    path.unlink(missing_ok=True)
    return artifact


def _save(path: Path, name: str) -> None:
    """Moves or copies a file to a name that was free; a failed copy leaves no partial content,
    which would be mistaken for the whole."""
    try:
        with path.open("rb") as file:
            storage().save(name, _Staged(file, path))
    except OSError:
        with suppress(OSError):
            storage().delete(name)
        raise


def put_linked(path: Path, expected: str) -> Artifact:
    """Stores a file that remains where it is and is never changed: by a hard link where the file
    system supports one, else by a copy.

    Raises: as `put_file`.
    """
    with _staging() as staged:
        staged.unlink()
        link_or_copy(path, staged)
        return put_file(staged, expected)


def link_or_copy(source: Path, target: Path) -> None:
    """Links the file under another name; copies it where the file system cannot link."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def open_artifact(sha256: str) -> IO[bytes]:
    """The content, for reading. Raises `FileNotFoundError` if it is not in the store."""
    return storage().open(name_of(sha256), "rb")


async def streamed(sha256: str) -> AsyncIterator[bytes]:
    """The content in blocks on demand: none of it is buffered for a slow reader."""
    file = await sync_to_async(open_artifact)(sha256)
    try:
        while block := await sync_to_async(file.read)(_BLOCK):
            yield block
    finally:
        await sync_to_async(file.close)()


def local_path(sha256: str) -> Path:
    """A local file with the content, not to be changed: the store's own, or a copy that was checked
    when it was fetched. Raises `OSError` if the content is missing or damaged."""
    with suppress(NotImplementedError):
        path = Path(storage().path(name_of(sha256)))
        path.stat()
        return path
    copy = settings.ARTIFACT_COPIES_DIR / sha256
    if not copy.exists():
        _fetch(sha256, copy)
    return copy


def _fetch(sha256: str, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(prefix=".", dir=copy.parent)
    digest = hashlib.sha256()
    try:
        with os.fdopen(descriptor, "wb") as file, open_artifact(sha256) as content:
            while block := content.read(_BLOCK):
                digest.update(block)
                file.write(block)
        if digest.hexdigest() != sha256:
            raise OSError(f"artifact {sha256}: the store returned other bytes")
        Path(draft).replace(copy)
    finally:
        Path(draft).unlink(missing_ok=True)


def remove(artifact: Artifact) -> bool:
    """Deletes the artifact; False if something refers to it by now, it was stored again, or a
    backup is being made (`hold_removals`): then the next collection removes it."""
    try:
        with transaction.atomic():
            if not may_remove():
                return False
            lock(artifact.pk)
            with connection.cursor() as cursor:
                # Otherwise a key that points at it would be checked only at the commit, after its
                # bytes were removed.
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            removable = unreferenced().filter(pk=artifact.pk, last_put=artifact.last_put)
            if not removable.delete()[0]:
                return False
            storage().delete(name_of(artifact.pk))
    except (IntegrityError, ProtectedError):
        return False
    return True


def name_of(sha256: str) -> str:
    """The content's name in the store; raises `ValueError` for an invalid SHA-256."""
    if not _SHA256.fullmatch(sha256):
        raise ValueError(f"{sha256[:80]!r} is no SHA-256")
    return f"{sha256[:2]}/{sha256}"


def lock(sha256: str) -> None:
    """Locks the content: nobody else stores or removes it until the current transaction ends."""
    key = int.from_bytes(bytes.fromhex(sha256[:16]), signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


def may_remove() -> bool:
    """Returns whether nothing holds removals back; then nothing can until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock_shared(%s)", [_REMOVALS])
        return cursor.fetchone()[0]


@contextmanager
def hold_removals(seconds: float) -> Iterator[bool]:
    """Keeps every content in the store for the duration; yields whether it does.

    Waits at most `seconds` for removals in progress and for another holder. The hold ends with the
    connection, so that nothing is held by a process that died.
    """
    with connection.cursor() as cursor:
        milliseconds = f"{max(1, round(1000 * seconds))}ms"
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [milliseconds])
        try:
            cursor.execute("SELECT pg_advisory_lock(%s)", [_REMOVALS])
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable):
                raise
            yield False
            return
        finally:
            cursor.execute("RESET lock_timeout")
    try:
        yield True
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_REMOVALS])


@contextmanager
def _staging() -> Any:
    settings.UPLOADS_DIR.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix="staged-", dir=settings.UPLOADS_DIR)
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
