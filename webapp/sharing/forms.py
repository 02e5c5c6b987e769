"""Forms that create share links."""

from __future__ import annotations

from django import forms

DAYS = ((1, "a day"), (7, "a week"), (30, "30 days"), (90, "90 days"))


class ShareForm(forms.Form):
    tree = forms.IntegerField(required=False, min_value=0, max_value=2**63 - 1)
    until = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    days = forms.TypedChoiceField(choices=DAYS, coerce=int, initial=7)


class ComparisonShareForm(forms.Form):
    days = forms.TypedChoiceField(choices=DAYS, coerce=int, initial=7)
    frozen = forms.BooleanField(required=False)
