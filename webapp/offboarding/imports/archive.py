"""Reader of a workspace's export, of which nothing is trusted.

Invariants: no name of a member becomes a path; no more than one line or block of it is in memory;
no member is read beyond the size that the manifest states, and each one that is used must have the
SHA-256 that is stated there. A refusal names the member and the remedy.
"""

from __future__ import annotations

import hashlib
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from webapp.offboarding.errors import ImportRefused
from webapp.offboarding.export import FORMAT, MANIFEST

MOST_MEMBERS = 1_000_000
MOST_MANIFEST_BYTES = 256 << 20
LONGEST_LINE = 16 << 20
"""Bytes of one row: the largest are the settings and the outcomes of an evaluation."""
MOST_RATIO = 200
"""Unpacked bytes for each byte of the file; logs of events have 10 to 40."""
ALWAYS_ALLOWED = 64 << 20
"""Unpacked bytes of a file however small it is."""
AGAIN = "Export the workspace again, and copy the file whole."
_BLOCK = 1 << 20
_NAME = re.compile(
    r"[a-z_]+\.jsonl?|runs/[0-9a-f-]{36}/(events\.ndjson|metrics\.jsonl)"
    r"|datasets/[0-9]{1,19}/(problems|checks\.jsonl)|models/[0-9]{1,19}/[^/\\\x00]{1,100}"
)
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
T = TypeVar("T")


class _Member(msgspec.Struct, forbid_unknown_fields=True):
    size: Annotated[int, msgspec.Meta(ge=0)]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class _Format(msgspec.Struct):
    format: int


class _Manifest(msgspec.Struct):
    members: dict[str, _Member]


class Archive:
    """An open export. Use `opened`."""

    def __init__(self, file: zipfile.ZipFile, size: int):
        self._zip = file
        self._infos = _checked_infos(file, size)
        data = self._manifest_bytes()
        self._members = _manifest(data).members
        self.digest = hashlib.sha256(data).hexdigest()
        """Identity of the export: the digest of all digests."""
        if odd := set(self._members) ^ (self._infos.keys() - {MANIFEST}):
            raise ImportRefused(sorted(odd)[0], f"is in the file or in its manifest alone. {AGAIN}")
        for name, member in self._members.items():
            if self._infos[name].file_size != member.size:
                raise ImportRefused(name, f"has another size than its manifest says. {AGAIN}")

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        """Yields the names of its members, without the manifest."""
        return iter(self._members)

    def size(self, name: str) -> int:
        return self._members[name].size

    def below(self, folder: str) -> list[str]:
        """Returns the names of the members of a folder."""
        return [name for name in self._members if name.startswith(f"{folder}/")]

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yields a member's content. Raises `ImportRefused`, at its end at the latest, if it is
        damaged or not the one of the manifest."""
        if name not in self._members:
            raise ImportRefused(name, f"is missing. {AGAIN}")
        digest, left = hashlib.sha256(), self._members[name].size
        try:
            with self._zip.open(self._infos[name]) as content:
                while block := content.read(_BLOCK):
                    left -= len(block)
                    if left < 0:
                        raise ImportRefused(name, f"is longer than the file says. {AGAIN}")
                    digest.update(block)
                    yield block
        except _BROKEN as error:
            raise ImportRefused(name, f"cannot be read ({error}). {AGAIN}") from None
        if left or digest.hexdigest() != self._members[name].sha256:
            raise ImportRefused(name, f"is not what the manifest says: it was changed. {AGAIN}")

    def lines(self, name: str) -> Iterator[tuple[int, bytes]]:
        """Yields the lines of a member that are not empty, with their numbers from 1."""
        kept = b""
        number = 0
        for block in self.blocks(name):
            *whole, kept = (kept + block).split(b"\n")
            for line in whole:
                number += 1
                if line.strip():
                    yield number, line
            if len(kept) > LONGEST_LINE:
                raise ImportRefused(name, f"line {number + 1} is longer than {LONGEST_LINE} bytes.")
        if kept.strip():
            yield number + 1, kept

    def rows(self, name: str, kind: type[T]) -> Iterator[T]:
        """Yields the rows of a table. Raises `ImportRefused` naming line and field of a bad one."""
        decoder = msgspec.json.Decoder(kind)
        for number, line in self.lines(name):
            yield decoded(decoder, line, name, number)

    def verify(self) -> None:
        """Reads every member once, so that damage is reported before anything is stored."""
        for name in self._members:
            for _ in self.blocks(name):
                pass

    def _manifest_bytes(self) -> bytes:
        if MANIFEST not in self._infos:
            raise ImportRefused(
                MANIFEST,
                "is missing: the file is no export of a workspace, or one of a version of Grove "
                "before 0.2. Export the workspace with this version.",
            )
        if self._infos[MANIFEST].file_size > MOST_MANIFEST_BYTES:
            raise ImportRefused(MANIFEST, f"is larger than {MOST_MANIFEST_BYTES} bytes.")
        try:
            return self._zip.read(self._infos[MANIFEST])
        except _BROKEN as error:
            raise ImportRefused(MANIFEST, f"cannot be read ({error}). {AGAIN}") from None


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Opens an export.

    Raises:
        ImportRefused: it is none, is damaged, or is of a newer Grove.
        OSError: the file cannot be read.
    """
    if path.exists() and not path.is_file():  # opening a pipe would wait for its writer
        raise ImportRefused("the path", "names no file. Copy the export to one first.")
    try:
        file = zipfile.ZipFile(path)
    except _BROKEN as error:
        reason = f"is no zip, or not a whole one ({error}). {AGAIN}"
        raise ImportRefused("the file", reason) from None
    with file:
        yield Archive(file, path.stat().st_size)


def decoded(decoder: msgspec.json.Decoder[T], line: bytes, name: str, number: int) -> T:
    """Returns a decoded line; raises `ImportRefused` naming it."""
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ImportRefused(f"{name}, line {number}", f"cannot be used: {error}.") from None


def _manifest(data: bytes) -> _Manifest:
    try:
        version = msgspec.json.decode(data, type=_Format).format
        if version != FORMAT:
            raise ImportRefused(
                MANIFEST,
                f"has layout {version}, and this version of Grove reads layout {FORMAT}. Import "
                "the file with the version that made it, or a newer one.",
            )
        return msgspec.json.decode(data, type=_Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ImportRefused(MANIFEST, f"is damaged ({error}). {AGAIN}") from None


def _checked_infos(file: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    infos: dict[str, zipfile.ZipInfo] = {}
    listed = file.infolist()
    if len(listed) > MOST_MEMBERS:
        raise ImportRefused("the file", f"has {len(listed)} members; {MOST_MEMBERS} at most.")
    for info in listed:
        if not _NAME.fullmatch(info.filename):
            raise ImportRefused(info.filename, "is no part of an export of a workspace.")
        if stat.S_ISLNK(info.external_attr >> 16):
            raise ImportRefused(info.filename, "is a link, which no export has.")
        if info.filename in infos:
            raise ImportRefused(info.filename, f"is there twice. {AGAIN}")
        if info.flag_bits & 1 or info.compress_type not in _PACKED:
            raise ImportRefused(info.filename, "is encrypted, or packed in another way than ours.")
        infos[info.filename] = info
    unpacked = sum(info.file_size for info in listed)
    if unpacked > max(ALWAYS_ALLOWED, MOST_RATIO * size):
        raise ImportRefused(
            "the file", f"of {size} bytes would unpack to {unpacked}: it is no export of ours."
        )
    return infos


def plain(value: Any) -> Any:
    """Returns a row's JSON value without NUL, which the database cannot store."""
    if isinstance(value, str):
        return value.replace("\0", "�")
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {plain(name): plain(one) for name, one in value.items()}
    return value
