"""Stored responses to requests with an idempotency key.

Invariant: a row is committed together with what the request created, or neither is; so a request
repeated under the key gets the same response, and creates nothing. It is disclosed neither to
others, nor to a user who may see less by now.
"""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models


class KeptAnswer(models.Model):
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    token = models.ForeignKey(
        "accounts.ApiToken", on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """The token of the request: another one may see less, and does not get the response."""
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    """SHA-256 of the method, the address and the body; empty for rows migrated from elsewhere."""
    status = models.PositiveSmallIntegerField(default=0)
    body = models.BinaryField(default=b"")
    tells = models.BooleanField(default=True)  # codespell:ignore
    """False if the response contained a secret, which is shown once and not stored."""
    projects = ArrayField(models.BigIntegerField(), default=list)
    """Those that the user saw then: a user who sees less by now does not get the response again."""
    content_type = models.CharField(max_length=100, blank=True)
    at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_answer_of_a_key")]
