"""Template tags of pages that know nothing of alerts or operators."""

from __future__ import annotations

from typing import Any

from django import template

from webapp.alerts.models import Mute
from webapp.alerts.operators import is_operator
from webapp.experiments.models import Run

register = template.Library()


@register.inclusion_tag("parts/mute.html", takes_context=True)
def mute_button(context: template.Context, run: Run) -> dict[str, Any]:
    """The button that mutes the run's notices for the visitor, or ends that."""
    muted = Mute.objects.filter(run=run.pk, user=context["request"].user.pk).exists()
    return {"run": run, "muted": muted, "csrf_token": context["csrf_token"]}


@register.simple_tag(takes_context=True)
def operates(context: template.Context) -> bool:
    """Whether the visitor is an operator of the installation."""
    return is_operator(context["request"].user)
