"""Records of complete exports of whole workspaces, each with the state that it contains.

Invariant: there is a row only for an export of which every byte was sent.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from webapp.projects.models import Workspace


class WorkspaceExport(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="exports")
    state = models.CharField(max_length=64)
    """Digest of the workspace at the start (`offboarding.state.state_of`)."""
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    made = models.DateTimeField(auto_now_add=True)
    """When its last byte was sent."""
