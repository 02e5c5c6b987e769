"""S3-compatible bucket as a storage of artifacts (`GROVE_S3_BUCKET`).

Invariants: an object is read by ranges, so that no more of it is fetched than is requested, and
none of it is held whole; every request has a deadline; every failure is an `OSError`, as with
files, and a missing object a `FileNotFoundError`. Requires the extra `s3`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files import File
from storages.backends.s3 import S3Storage

RANGE_BYTES = 8 << 20
"""Bytes fetched at once of a sequential read."""
_CONFIG = Config(
    connect_timeout=5,
    read_timeout=60,
    retries={"max_attempts": 3, "mode": "standard"},
    signature_version="s3v4",
    # Supported by every S3-compatible server: the bucket in the path, and no checksums of newer
    # protocols, because contents are known by their SHA-256.
    s3={"addressing_style": "path"},
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)
_MISSING = {"404", "NoSuchKey", "NotFound"}


class Bucket(S3Storage):
    """Takes the `options` of S3Storage."""

    def __init__(self, **options: Any) -> None:
        super().__init__(client_config=_CONFIG, **options)

    def _open(self, name: str, mode: str = "rb") -> File:
        with _as_os_errors(name):
            entry = self.bucket.Object(self._normalize_name(name))
            size = entry.content_length
        return File(io.BufferedReader(_Ranges(entry, size, name), RANGE_BYTES), name)

    def _save(self, name: str, content: Any) -> str:
        with _as_os_errors(name):
            return super()._save(name, content)

    def exists(self, name: str) -> bool:
        with _as_os_errors(name):
            return super().exists(name)

    def delete(self, name: str) -> None:
        with _as_os_errors(name):
            super().delete(name)

    def listdir(self, name: str) -> tuple[list[str], list[str]]:
        with _as_os_errors(name):
            return super().listdir(name)

    def get_modified_time(self, name: str) -> Any:
        with _as_os_errors(name):
            return super().get_modified_time(name)


class _Ranges(io.RawIOBase):
    """The bytes of an object, each fetched when it is read."""

    def __init__(self, entry: Any, size: int, name: str) -> None:
        self._entry, self._size, self._name, self._at = entry, size, name, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        data = self._fetched(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        # Python's own reads 8 KiB at a time.
        return b"".join(iter(lambda: self._fetched(RANGE_BYTES), b""))

    def _fetched(self, most: int) -> bytes:
        last = min(self._at + most, self._size) - 1
        if last < self._at:
            return b""
        with _as_os_errors(self._name):
            data = self._entry.get(Range=f"bytes={self._at}-{last}")["Body"].read()
        self._at += len(data)
        return data


@contextmanager
def _as_os_errors(name: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        details = error.response["Error"]
        if details["Code"] in _MISSING:
            raise FileNotFoundError(f"{name} is not in the bucket") from None
        message = f"the bucket refuses {name}: {details['Code']} {details.get('Message', '')}"
        raise OSError(f"{message}; see the GROVE_S3 variables") from error
    except BotoCoreError as error:
        raise OSError(f"the bucket cannot be reached for {name}: {error}") from error
