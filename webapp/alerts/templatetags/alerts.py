"""Template tag of a run's page, which knows nothing of alerts."""

from __future__ import annotations

from typing import Any

from django import template

from webapp.alerts.models import Mute
from webapp.experiments.models import Run

register = template.Library()


@register.inclusion_tag("parts/mute.html", takes_context=True)
def mute_button(context: template.Context, run: Run) -> dict[str, Any]:
    """The button that mutes the run's notices for the visitor, or ends that."""
    muted = Mute.objects.filter(run=run.pk, user=context["request"].user.pk).exists()
    return {"run": run, "muted": muted, "csrf_token": context["csrf_token"]}
