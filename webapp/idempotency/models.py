"""Answers to what programs asked for under an idempotency key.

Invariant: a row is committed together with what the request made, or neither is; so who asks again
under the key is answered as then, and makes nothing. It tells nothing to others, nor to who may see
less by now.
"""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models


class KeptAnswer(models.Model):
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    token = models.ForeignKey(
        "accounts.ApiToken", on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """Through which it was asked: another one may see less, and is not told the answer."""
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    """SHA-256 of the method, the address and the body; empty of what was kept elsewhere once."""
    status = models.PositiveSmallIntegerField(default=0)
    body = models.BinaryField(default=b"")
    tells = models.BooleanField(default=True)
    """Not if it told a secret, which is shown once and not kept."""
    projects = ArrayField(models.BigIntegerField(), default=list)
    """Those that the asker saw then: who sees less by now is not told the answer again."""
    content_type = models.CharField(max_length=100, blank=True)
    at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_answer_of_a_key")]
