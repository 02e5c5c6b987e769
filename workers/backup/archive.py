"""The archive of a backup: a zip whose members are contents, each stored once under its SHA-256.

    database.dump           pg_dump's custom format
    files/ab/abcd...        one content
    manifest.json           written last; lists paths and SHA-256 of all of it

Invariants: an archive appears under its name whole, flushed, or not at all; no member but the
manifest is held in memory whole; a reader trusts no size and no hash that it has not computed, and
reads of no member more than the manifest says.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from workers.backup.errors import BackupError
from workers.backup.manifest import Entry, Manifest, decoded

DATABASE, MANIFEST = "database.dump", "manifest.json"
BLOCK = 1 << 20
MOST_MANIFEST_BYTES = 1 << 30
_COMPRESSED = (".json", ".jsonl", ".log", ".txt", ".toml", ".jinja")
"""Files that are worth compressing; weights are not."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGE = (
    EOFError, NotImplementedError, OSError, OverflowError, ValueError, struct.error,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What zipfile raises for a file that is no whole archive of `_METHODS`."""


class WrongContent(OSError):
    """Raised for a content that is not the one its SHA-256 names."""


class Archive:
    """An archive being written. Use `writing`."""

    def __init__(self, file: zipfile.ZipFile):
        self._zip = file
        self._stored: set[str] = set()

    def add(self, path: str, source: Path, size: int) -> Entry:
        """Adds the first `size` bytes of a file, which may grow meanwhile, but not change.

        Raises:
            OSError: it cannot be read, or the archive not written.
            WrongContent: it was changed, or has fewer bytes.
        """
        digest = hashlib.sha256()
        for block in _blocks(source, size):
            digest.update(block)
        return self.add_known(path, _blocks(source, size), size, digest.hexdigest())

    def add_known(self, path: str, blocks: Iterable[bytes], size: int, sha256: str) -> Entry:
        """Adds a content whose SHA-256 is known; stores nothing if it is in the archive already.

        Raises:
            WrongContent: the content is not what its SHA-256 says.
        """
        if sha256 not in self._stored:
            compressed = path.endswith(_COMPRESSED)
            if self._write(_member(sha256), blocks, compressed) != (size, sha256):
                raise WrongContent("its content is not the one that its SHA-256 names")
            self._stored.add(sha256)
        return Entry(path, size, sha256)

    def add_database(self, blocks: Iterable[bytes]) -> Entry:
        """Adds the dump of the database as it comes."""
        return Entry(DATABASE, *self._write(DATABASE, blocks, compressed=False))

    def finish(self, manifest: Manifest) -> None:
        """Adds the manifest, without which an archive is none."""
        self._write(MANIFEST, [msgspec.json.format(msgspec.json.encode(manifest))], True)

    def _write(self, name: str, blocks: Iterable[bytes], compressed: bool) -> tuple[int, str]:
        info = zipfile.ZipInfo(name)
        info.compress_type = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
        info.external_attr = 0o600 << 16
        digest, size = hashlib.sha256(), 0
        with self._zip.open(info, "w", force_zip64=True) as member:
            for block in blocks:
                digest.update(block)
                size += len(block)
                member.write(block)
        return size, digest.hexdigest()


@contextmanager
def writing(path: Path) -> Iterator[Archive]:
    """Writes an archive under a temporary name next to `path`, and renames it at the end; removes
    it if anything is raised."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("xb") as file:
            with zipfile.ZipFile(file, "w", compresslevel=1) as made:
                yield Archive(made)
            file.flush()
            os.fsync(file.fileno())
        _publish(draft, path)
    except FileExistsError:
        raise BackupError(f"{path} exists by now; nothing was replaced.") from None
    finally:
        draft.unlink(missing_ok=True)


def _publish(draft: Path, path: Path) -> None:
    """Gives the archive its name. Raises `FileExistsError` if somebody took that meanwhile."""
    try:
        os.link(draft, path)  # unlike a renaming, never replaces anything
    except FileExistsError:
        raise
    except OSError:  # the file system has no links
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        draft.rename(path)


class Backup:
    """An archive being read. Use `reading`."""

    def __init__(self, file: zipfile.ZipFile, path: Path):
        self._zip, self.path = file, path
        self.manifest = decoded(self._manifest())

    def verify(self) -> None:
        """Reads every content once.

        Raises:
            BackupError: one is missing, or is not what the manifest says.
        """
        checked: set[str] = set()
        for entry in (self.manifest.database, *self.manifest.files):
            if entry.sha256 not in checked:
                for _ in self.content(entry):
                    pass
                checked.add(entry.sha256)

    def content(self, entry: Entry) -> Iterator[bytes]:
        """Yields the content in blocks, then raises `BackupError` if it was another one."""
        name = DATABASE if entry is self.manifest.database else _member(entry.sha256)
        digest, size = hashlib.sha256(), 0
        try:
            with self._opened(name) as member:
                while block := member.read(BLOCK):
                    digest.update(block)
                    size += len(block)
                    if size > entry.bytes:
                        raise self._damaged(entry.path)
                    yield block
        except (KeyError, *_DAMAGE) as error:
            raise self._damaged(entry.path) from error
        if (size, digest.hexdigest()) != (entry.bytes, entry.sha256):
            raise self._damaged(entry.path)

    def _opened(self, name: str) -> IO[bytes]:
        info = self._zip.getinfo(name)
        if info.compress_type not in _METHODS or info.flag_bits & 1:  # encrypted
            raise NotImplementedError(name)
        return self._zip.open(info)

    def _damaged(self, path: str) -> BackupError:
        return BackupError(
            f"{self.path} is damaged: {path} is not the content that was backed up. Nothing was "
            "changed; use another copy of the backup."
        )

    def _manifest(self) -> bytes:
        try:
            with self._opened(MANIFEST) as member:
                data = member.read(MOST_MANIFEST_BYTES + 1)
        except KeyError:
            raise BackupError(f"{self.path} is no backup of Grove: it has no manifest.") from None
        except _DAMAGE:
            raise self._damaged(MANIFEST) from None
        if len(data) > MOST_MANIFEST_BYTES:
            raise self._damaged(MANIFEST)
        return data


@contextmanager
def reading(path: Path) -> Iterator[Backup]:
    """Opens an archive.

    Raises:
        BackupError: it does not exist, is truncated, damaged, newer than this program, or no
            backup at all.
    """
    if path.exists() and not path.is_file():  # opening a pipe would wait for its writer
        raise BackupError(f"{path} cannot be read: it is no file. Copy the backup to one first.")
    try:
        file: IO[bytes] = path.open("rb")
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror}.") from None
    with file:
        try:
            opened = zipfile.ZipFile(file)
        except _DAMAGE:
            raise BackupError(
                f"{path} is no whole backup: it is truncated, damaged, or something else. Nothing "
                "was changed; use another copy."
            ) from None
        with opened:
            yield Backup(opened, path)


def _blocks(source: Path, size: int) -> Iterator[bytes]:
    with source.open("rb") as file:
        missing = size
        while missing > 0:
            block = file.read(min(BLOCK, missing))
            if not block:
                raise WrongContent(f"it lost its last {missing} bytes while it was read")
            missing -= len(block)
            yield block


def _member(sha256: str) -> str:
    return f"files/{sha256[:2]}/{sha256}"
