"""Forms of the dataset pages."""

from __future__ import annotations

from typing import Any

from django import forms

from engine.problems.overlap import THRESHOLD
from webapp.datasets.models import DatasetProblem, DatasetVersion
from webapp.datasets.storing import KEEP

LARGEST = 2**31 - 1


class SearchForm(forms.Form):
    """Filter and splits of problems; missing or invalid values default to those of a run."""

    q = forms.CharField(max_length=200, required=False)
    check = forms.ChoiceField(choices=[("", "all"), *DatasetProblem.Check.choices], required=False)
    after = forms.IntegerField(min_value=0, max_value=LARGEST, required=False)
    seed = forms.IntegerField(min_value=0, max_value=LARGEST, required=False)
    train = forms.IntegerField(min_value=1, max_value=LARGEST, required=False)
    validation = forms.IntegerField(min_value=0, max_value=LARGEST, required=False)
    test = forms.IntegerField(min_value=0, max_value=LARGEST, required=False)

    def value(self, name: str, default: Any) -> Any:
        """Returns the field's value, or the default."""
        given = self.cleaned_data.get(name)
        return default if given in (None, "") else given


class DeriveForm(forms.Form):
    keep = forms.ChoiceField(choices=[(name, name) for name in KEEP])
    note = forms.CharField(max_length=4000, required=False)


class OverlapForm(forms.Form):
    """Form of an overlap. `others`: the versions to compare with."""

    other = forms.ModelChoiceField(
        queryset=DatasetVersion.objects.none(), empty_label=None, label="Compare with"
    )
    threshold = forms.FloatField(min_value=0.01, max_value=1, initial=THRESHOLD, label="Threshold")

    def __init__(self, others: Any, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.fields["other"].queryset = others
