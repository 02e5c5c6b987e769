"""Form of how long a workspace keeps its runs."""

from __future__ import annotations

from django import forms

from webapp.retention.policy import LONGEST, SHORTEST


class RetentionForm(forms.Form):
    days = forms.IntegerField(
        label="Days to keep a run after its end",
        min_value=SHORTEST,
        max_value=LONGEST,
        required=False,
    )
    unused_versions = forms.BooleanField(
        label="Also runs whose registered model versions nothing uses, with these versions",
        required=False,
    )
