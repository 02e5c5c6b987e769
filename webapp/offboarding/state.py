"""Digest of a workspace's contents, which differs after any change.

It is computed from the audit records (`webapp.audit`), which cover all that people do, and from the
heads of the runs' logs, which grow with all that engines do.
"""

from __future__ import annotations

import hashlib
import json

from django.db.models import Count, Max, Sum

from webapp.audit.selectors import newest_record_ids
from webapp.datasets.models import DatasetReport
from webapp.experiments.models import Run
from webapp.projects.models import Workspace


def state_of(workspace: Workspace) -> str:
    """SHA-256, 64 hexadecimal digits."""
    runs = Run.objects.filter(experiment__project__workspace=workspace)
    reports = DatasetReport.objects.filter(version__dataset__project__workspace=workspace)
    parts = [
        newest_record_ids(workspace),
        runs.aggregate(runs=Count("pk"), events=Sum("head_seq"), leases=Sum("fencing")),
        sorted(runs.values_list("state").annotate(Count("pk"))),
        reports.aggregate(reports=Count("pk"), newest=Max("finished")),
    ]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()
