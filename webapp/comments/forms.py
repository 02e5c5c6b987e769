"""What a comment may be."""

from __future__ import annotations

from typing import Any

from django import forms

from webapp.comments.services import LONGEST


class CommentForm(forms.Form):
    text = forms.CharField(
        label="Comment",
        max_length=LONGEST,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Markdown; @name tells a member.",
    )


class TargetForm(forms.Form):
    """What an address of comments names; `cleaned_data["run"]` are ids."""

    run = forms.MultipleChoiceField()
    tree = forms.IntegerField(required=False, min_value=0, max_value=2**63 - 1)
    node = forms.IntegerField(required=False, min_value=0, max_value=2**63 - 1)

    def __init__(self, data: Any):
        super().__init__(data)
        self.fields["run"] = RunsField()


class RunsField(forms.Field):
    widget = forms.MultipleHiddenInput

    def to_python(self, value: Any) -> list[Any]:
        return [forms.UUIDField().clean(one) for one in value or ()]
