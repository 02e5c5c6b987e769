"""People, and the links that let them in once.

Invariant: the token of a sign-in link is never stored, only its digest; a link works once.
"""

from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """Somebody who signs in. What they may do follows from their memberships, not from flags."""


class SignInLink(models.Model):
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sign_in_links")
    digest = models.CharField(max_length=64, unique=True)
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
