"""Template tags of pages that know nothing of retention."""

from __future__ import annotations

from django import template

from webapp.experiments.models import Run
from webapp.projects.permissions import Action, may

register = template.Library()


@register.simple_tag(takes_context=True)
def may_delete(context: template.Context, run: Run) -> bool:
    """Whether the visitor may delete the run."""
    return may(context["request"].user, Action.DELETE_RUNS, run.project)
