"""Export of a report as one HTML file that needs nothing else: no script, no address, no network.

Style sheets are in the file; figures are SVG and tables, as on the page; it follows the reader's
choice of light or dark.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify

from webapp.reports.content import shown_page
from webapp.reports.embeds.readers import Reader
from webapp.reports.models import ReportPage

_SHEETS = ("css/grove.css", "css/reports.css")
_DARK = re.compile(r':root\[data-theme="dark"\] \{(.*?)\n\}', re.DOTALL)


def exported(page: ReportPage, reader: Reader) -> str:
    """Returns the file, with the figures that `reader` may see now."""
    content = shown_page(page, reader)
    context = {"page": page, "content": content, "style": _style(), "plain": True, "is_file": True}
    return render_to_string("report_export.html", context)


def file_name(page: ReportPage) -> str:
    """Returns a name of the file in ASCII."""
    return f"{slugify(page.title)[:60] or f'report-{page.pk}'}.html"


@cache
def _style() -> SafeString:
    """Our style sheets, without a text of people; dark where the reader's system is."""
    css = "\n".join(_sheet(name) for name in _SHEETS)
    dark = _DARK.search(css)
    if dark is None:
        raise RuntimeError("grove.css has no dark colours")
    css += f"\n@media (prefers-color-scheme: dark) {{ :root {{{dark[1]}\n}} }}\n"
    return mark_safe(css)  # nosec B308, B703


def _sheet(name: str) -> str:
    path = finders.find(name)
    if path is None:
        raise FileNotFoundError(name)
    return Path(path).read_text(encoding="utf-8")
