"""The page of datasets."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.datasets.selectors import visible_datasets


@require_safe
def datasets(request: HttpRequest) -> HttpResponse:
    """datasets.html: `datasets` (Dataset: name, project; `dataset.versions.all`, newest first,
    each with number, spec (dict), content_hash, left_out (list of str), created)."""
    return render(request, "datasets.html", {"datasets": visible_datasets(request.user)})
