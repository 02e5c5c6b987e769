"""A real server that speaks S3, for tests of artifacts in a bucket and of what creates one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from moto.server import ThreadedMotoServer


@contextmanager
def a_bucket_server() -> Iterator[str]:
    """The address of a server without buckets. All servers of a process share what they store, so
    what an earlier one left is removed."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    try:
        httpx.post(f"{address}/moto-api/reset", timeout=60).raise_for_status()
        yield address
    finally:
        server.stop()
