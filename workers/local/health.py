"""Whether the web service of this machine answers."""

from __future__ import annotations

import http.client

from webapp.config.addresses import allowed_host


def health(port: int, seconds: float) -> int | None:
    """Returns the status of /healthz on a port of this machine; None if nothing answers within the
    seconds. It is queried directly, whatever proxy the environment names."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request("GET", "/healthz", headers={"Host": allowed_host()})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
