"""Form of the filters of a workspace's audit log."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django import forms

from webapp.accounts.models import User
from webapp.audit.selectors import KINDS, AuditQuery


class _Day(forms.DateField):
    widget = forms.DateInput(attrs={"type": "date"})


class AuditForm(forms.Form):
    """`query()` returns the query; days are those of UTC, both included."""

    person = forms.TypedChoiceField(required=False, coerce=int, empty_value=None)
    kind = forms.ChoiceField(required=False, choices=[("", "anything"), *((k, k) for k in KINDS)])
    since = _Day(required=False)
    until = _Day(required=False)

    def __init__(self, people: list[User], *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.fields["person"].choices = [("", "anybody"), *((one.pk, str(one)) for one in people)]

    def query(self) -> AuditQuery:
        given = self.cleaned_data
        until = given["until"]
        return AuditQuery(
            person=given["person"],
            kind=given["kind"] or None,
            since=_start(given["since"]),
            until=_start(until + timedelta(days=1)) if until and until < date.max else None,
        )


def _start(day: date | None) -> datetime | None:
    return datetime.combine(day, time.min, UTC) if day else None
