"""Template filters and tags; numbers are formatted as by the scripts (static/js/lib/format.js)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django import template
from django.conf import settings
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from engine.config.names import shown_name, shown_text
from engine.config.problems import ProblemsConfig
from webapp.http.module_preload import imported
from webapp.markdown import render

register = template.Library()


@register.simple_tag
def mail_is_sent() -> bool:
    """Whether mail is configured, for templates that are rendered without a request."""
    return settings.MAIL_IS_SENT


@register.filter
def shown(name: str) -> str:
    """A name from a log, stored before names with hidden characters were refused, with escapes."""
    return shown_name(name)


@register.filter
def plain(text: object) -> str:
    """A text of other people, with escapes for characters that steer a terminal or turn the
    direction of a line."""
    return shown_text(str(text))


@register.filter
def percent(value: float | str | None) -> str:
    """0.4312 -> "43.1 %"; None or "" -> "–"."""
    return "–" if value is None or value == "" else f"{value * 100:.1f} %"


@register.filter
def figure(value: float | None) -> str:
    """0.01234567 -> "0.01235"; 1234567 -> "1,234,567"; None -> "–"."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


@register.filter
def at(values: Sequence[Any], index: int) -> Any:
    """The entry at an index."""
    return values[index]


@register.filter
def markdown(text: str) -> SafeString:
    """Notes of a run as HTML that is safe to show."""
    return render(text)


@register.filter
def with_code(text: str) -> SafeString:
    """A docstring's text as HTML: text between two backticks is code."""
    parts = re.split(r"`([^`]+)`", text)
    pieces = (format_html("<code>{}</code>" if n % 2 else "{}", p) for n, p in enumerate(parts))
    return format_html_join("", "{}", ((piece,) for piece in pieces))


@register.filter
def parameters(value: int) -> str:
    """524288 -> "0.52 M"; 8190000000 -> "8.19 B"."""
    for size, unit in ((1e9, "B"), (1e6, "M")):
        if value >= size / 10:
            return f"{value / size:.3g} {unit}"
    return f"{value:,}"


@register.filter
def settings_in_order(spec: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """A dataset version's settings in the order of `ProblemsConfig`, which the database loses."""
    return [(name, spec[name]) for name in ProblemsConfig.model_fields if name in spec]


@register.filter
def changes(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Pass@1 per agent, before and after: of the test split once it has both, else validation.

    Each has `name`, `before`, `after`, `up` (whether it rose) and `split`.
    """
    for split in ("test", "validation"):
        results = result.get(split, {})
        if "latest" in results and (split == "validation" or "before" in results):
            before = results.get("before", {}).get("agents", {})
            return [
                {
                    "name": name,
                    "before": before.get(name),
                    "after": after,
                    "up": before.get(name) is not None
                    and after is not None
                    and after >= before[name],
                    "split": split,
                }
                for name, after in results["latest"]["agents"].items()
            ]
    return []


@register.filter
def open_warnings(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The open health warnings of a run, oldest first."""
    return [one for one in result.get("health", []) if one["closed"] is None]


@register.filter
def typed(values: Mapping[str, str], setting: Any) -> str:
    """The text of a setting's field: the user's input, or else its value."""
    return values.get(setting.path, setting.shown)


@register.simple_tag
def modules(entry: str) -> tuple[str, ...]:
    """Static paths of the modules that a page's module imports."""
    return imported(entry)
