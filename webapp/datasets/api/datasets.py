"""REST of datasets."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils.http import content_disposition_header
from ninja import Path, Query, Router, Status

from webapp.artifacts.store import streamed
from webapp.datasets import reports, storing
from webapp.datasets.api.schemas import (
    DatasetList,
    DatasetOut,
    DatasetVersionOut,
    HardnessList,
    NewDatasetVersion,
    NewDerived,
    NewOverlap,
    ProblemDetail,
    ProblemList,
    ReportOut,
    SplitSizes,
    SplitsOut,
    UseList,
    Which,
    WhichProblems,
)
from webapp.datasets.difficulty import problem_difficulties
from webapp.datasets.errors import refused
from webapp.datasets.models import Dataset, DatasetReport, DatasetVersion
from webapp.datasets.selectors import (
    content_of,
    newest_report,
    problems_page,
    splits,
    uses,
    visible_datasets,
    visible_version,
)
from webapp.projects.models import Project
from webapp.projects.permissions import Action, require, require_scope
from webapp.rest.pagination import LARGEST_ID, page
from webapp.rest.queued import STATUS, QueuedOut

router = Router()
Id = Annotated[int, Path(ge=0, le=LARGEST_ID)]
_MADE = {200: DatasetVersionOut, 201: DatasetVersionOut, STATUS: QueuedOut}
_LINES = {
    200: {
        "description": "OK",
        "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
    }
}


@router.get("", response=DatasetList)
def list_datasets(request: HttpRequest, query: Query[Which]):
    """Lists datasets with their versions, newest first."""
    datasets = visible_datasets(request.user).filter(name__icontains=query.name)
    if query.project is not None:
        datasets = datasets.filter(project=query.project)
    return page(datasets, "datasets", query)


@router.post("", response=_MADE)
def create_dataset_version(request: HttpRequest, new: NewDatasetVersion):
    """Creates a version of the named dataset, which is created if missing, from the problems of
    finished uploads, and queues its check. 200 if the dataset has the same problems already. 202
    while others' are read: repeat the request."""
    require_scope(request.user, Action.ADD_DATASETS)
    project = get_object_or_404(Project.objects.visible_to(request.user), pk=new.project)
    require(request.user, Action.ADD_DATASETS, project)
    fields = (new.name, new.uploads, new.format, new.note)
    version, is_new = storing.add_version(project, request.user, *fields)
    return Status(201 if is_new else 200, version)


@router.get("/{int:dataset_id}", response=DatasetOut)
def get_dataset(request: HttpRequest, dataset_id: Id):
    return get_object_or_404(visible_datasets(request.user), pk=dataset_id)


@router.delete("/{int:dataset_id}", response={204: None})
def delete_dataset(request: HttpRequest, dataset_id: Id):
    """Deletes a dataset with all its versions; 409 names what uses one of them."""
    require_scope(request.user, Action.ADD_DATASETS)
    datasets = Dataset.objects.visible_to(request.user).select_related("project__workspace")
    dataset = get_object_or_404(datasets, pk=dataset_id)
    require(request.user, Action.ADD_DATASETS, dataset.project)
    storing.delete_dataset(dataset, request.user)
    return Status(204, None)


@router.get("/versions/{int:dataset_version_id}", response=DatasetVersionOut)
def get_dataset_version(request: HttpRequest, dataset_version_id: Id):
    return visible_version(request.user, dataset_version_id)


@router.delete("/versions/{int:dataset_version_id}", response={204: None})
def delete_dataset_version(request: HttpRequest, dataset_version_id: Id):
    """Deletes a dataset version; 409 names what uses it."""
    storing.delete_version(_changeable(request, dataset_version_id), request.user)
    return Status(204, None)


@router.post("/versions/{int:dataset_version_id}/derive", response=_MADE)
def derive_dataset_version(request: HttpRequest, dataset_version_id: Id, new: NewDerived):
    """Creates a version with the good problems of a checked one. 200 if it exists already, 202
    while others' are read: repeat the request."""
    version = _changeable(request, dataset_version_id)
    derived, is_new = storing.derive_version(version, request.user, new.keep, new.note)
    return Status(201 if is_new else 200, derived)


@router.get("/versions/{int:dataset_version_id}/uses", response=UseList)
def list_dataset_uses(request: HttpRequest, dataset_version_id: Id):
    """Lists runs and model versions that were trained on it, and versions derived from it."""
    return {"uses": uses(visible_version(request.user, dataset_version_id), request.user)}


@router.get("/versions/{int:dataset_version_id}/problems", response=ProblemList)
def list_dataset_problems(
    request: HttpRequest, dataset_version_id: Id, query: Query[WhichProblems]
):
    """Lists the version's problems in their order."""
    version = visible_version(request.user, dataset_version_id)
    result = problems_page(version, query.q, query.check or "", query.cursor or 0, query.limit)
    return {"problems": result.problems, "next": result.next}


@router.get("/versions/{int:dataset_version_id}/problems/{int:number}", response=ProblemDetail)
def get_dataset_problem(request: HttpRequest, dataset_version_id: Id, number: Id):
    """Returns one problem with its tests and its reference."""
    version = visible_version(request.user, dataset_version_id)
    row = get_object_or_404(version.problems.select_related("version"), number=number)
    row.content = content_of(row)
    return row


@router.get("/versions/{int:dataset_version_id}/splits", response=SplitsOut)
def get_dataset_splits(request: HttpRequest, dataset_version_id: Id, query: Query[SplitSizes]):
    """Returns the problems on which a run with these settings trains, validates and tests."""
    version = visible_version(request.user, dataset_version_id)
    return splits(version, query.seed, (query.train, query.validation, query.test))


@router.get("/versions/{int:dataset_version_id}/difficulty", response=HardnessList)
def get_dataset_difficulty(request: HttpRequest, dataset_version_id: Id):
    """Lists the difficulty of its problems for the runs on it, hardest first."""
    return problem_difficulties(visible_version(request.user, dataset_version_id), request.user)


@router.get(
    "/versions/{int:dataset_version_id}/content", response=None, openapi_extra={"responses": _LINES}
)
def get_dataset_content(request: HttpRequest, dataset_version_id: Id):
    """Returns all its problems as JSON lines in Grove's format."""
    version = _stored(visible_version(request.user, dataset_version_id))
    name = f"{version.dataset.name}-v{version.number}.jsonl"
    headers = {
        "Content-Disposition": content_disposition_header(True, name),
        "Content-Length": str(version.artifact.size),
        "ETag": f'"{version.artifact_id}"',
    }
    blocks = streamed(version.artifact_id)
    return StreamingHttpResponse(blocks, content_type="application/x-ndjson", headers=headers)


@router.post("/versions/{int:dataset_version_id}/validation", response={202: ReportOut})
def start_dataset_validation(request: HttpRequest, dataset_version_id: Id):
    """Queues a check in which a worker runs every reference on its tests in the sandbox; one check
    of a version at a time."""
    version = _changeable(request, dataset_version_id)
    return Status(202, reports.request_validation(version, request.user))


@router.get("/versions/{int:dataset_version_id}/validation", response=ReportOut)
def get_dataset_validation(request: HttpRequest, dataset_version_id: Id):
    """Returns the newest check; its results are listed with the problems
    (`problems?check=failed`)."""
    version = visible_version(request.user, dataset_version_id)
    kind = DatasetReport.Kind.VALIDATION
    return newest_report(version, kind) or get_object_or_404(version.reports, kind=kind)


@router.post("/versions/{int:dataset_version_id}/overlaps", response={202: ReportOut})
def start_dataset_overlap(request: HttpRequest, dataset_version_id: Id, new: NewOverlap):
    """Queues a comparison, by a worker, that finds problems of the version also in another one."""
    version = _changeable(request, dataset_version_id)
    other = visible_version(request.user, new.other)
    return Status(202, reports.request_overlap(version, other, new.threshold, request.user))


@router.get("/reports/{int:report_id}", response=ReportOut)
def get_dataset_report(request: HttpRequest, report_id: Id):
    """Returns the progress or the result of a check or an overlap."""
    rows = DatasetReport.objects.visible_to(request.user).select_related("version", "other")
    report = get_object_or_404(rows, pk=report_id)
    if report.other_id:
        visible_version(request.user, report.other_id)
    return report


@router.post("/reports/{int:report_id}/cancel", response=ReportOut)
def cancel_dataset_report(request: HttpRequest, report_id: Id):
    """Cancels a check or an overlap that is queued or running; one that has ended is unchanged."""
    report = get_dataset_report(request, report_id)
    _changeable(request, report.version_id)
    reports.cancel(report, request.user)
    return get_dataset_report(request, report_id)


def _changeable(request: HttpRequest, dataset_version_id: int) -> DatasetVersion:
    require_scope(request.user, Action.ADD_DATASETS)
    version = visible_version(request.user, dataset_version_id)
    require(request.user, Action.ADD_DATASETS, version.dataset.project)
    return version


def _stored(version: DatasetVersion) -> DatasetVersion:
    if version.artifact_id is None:
        reason = "its problems are not stored here, but generated or read by the runs on it"
        raise refused("version", str(version), reason, 404)
    return version
