"""Template filter of a version's origin."""

from __future__ import annotations

from django import template

from webapp.registry.versions.cards import starter_origin as _starter_origin

register = template.Library()

register.filter("starter_origin", _starter_origin)
