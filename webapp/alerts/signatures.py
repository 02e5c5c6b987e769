"""Signature of webhooks, as Standard Webhooks 1.0 (https://www.standardwebhooks.com) defines it.

Invariant: a secret follows from the server's key and the channel's nonce, so that a copy of the
database has none, and a new nonce ends the old secret at once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from django.utils.crypto import salted_hmac

_SALT = "webapp.alerts.webhook"
_PREFIX = "whsec_"


def secret_of(nonce: str) -> str:
    """The secret as a receiver is given it."""
    return _PREFIX + base64.b64encode(_key(nonce)).decode()


def signed_headers(nonce: str, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """`webhook-id`, `webhook-timestamp` (Unix seconds) and `webhook-signature`: `v1,` and the
    base64 of HMAC-SHA256 over `ID.TIMESTAMP.BODY`."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.new(_key(nonce), signed, hashlib.sha256).digest()).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature}",
    }


def _key(nonce: str) -> bytes:
    return salted_hmac(_SALT, nonce, algorithm="sha256").digest()
