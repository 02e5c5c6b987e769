"""Forms of comments, and of the query that selects what they are about."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms

from webapp.comments.services import LONGEST

_LARGEST = 2**63 - 1


class CommentForm(forms.Form):
    text = forms.CharField(
        label="Comment",
        max_length=LONGEST,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Markdown is supported. @name notifies a member.",
    )


class RunsField(forms.Field):
    """Ids of runs."""

    widget = forms.MultipleHiddenInput

    def to_python(self, value: Any) -> list[uuid.UUID]:
        return [forms.UUIDField().clean(one) for one in value or ()]


class TargetForm(forms.Form):
    run = RunsField()
    tree = forms.IntegerField(required=False, min_value=0, max_value=_LARGEST)
    node = forms.IntegerField(required=False, min_value=0, max_value=_LARGEST)
