"""Refusals of changes of reports."""

from __future__ import annotations

from webapp.errors import Refused
from webapp.reports.models import ReportPage


class EditConflict(Refused):
    """Raised if somebody saved the report since the version that an edit began with. Nothing is
    stored; `members` hold what is stored now, so that both texts are kept."""

    sentence = "{}"

    def __init__(self, page: ReportPage, version: int, title: str, text: str):
        super().__init__(
            f"{page.edited_by} saved version {page.version} of the report since version {version}, "
            "which yours began with. Merge both texts and send them with `version` "
            f"{page.version}."
        )
        self.current = page
        self.members = {
            "current": {"version": page.version, "title": page.title, "text": page.text},
            "yours": {"version": version, "title": title, "text": text},
        }


class ReportRefused(Refused):
    """Raised for a report that a limit does not allow; the message says which."""
