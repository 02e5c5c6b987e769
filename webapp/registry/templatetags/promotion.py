"""Template tag of model promotion, for pages of other apps."""

from __future__ import annotations

from typing import Any

from django import template

from webapp.projects.models import Workspace
from webapp.projects.permissions import Action, may
from webapp.registry.models import SecondPairOfEyes

register = template.Library()


@register.inclusion_tag("parts/second_pair.html", takes_context=True)
def promotion_card(context: template.Context, workspace: Workspace) -> dict[str, Any]:
    """The card of a workspace's page that shows, and to owners offers to change, whether promotions
    require a second person's approval."""
    user = context["request"].user
    return {
        "slug": workspace.slug,
        "can_change_second_pair": may(user, Action.CHANGE_SECOND_PAIR, workspace),
        "second_pair": SecondPairOfEyes.objects.filter(workspace=workspace).exists(),
    }
