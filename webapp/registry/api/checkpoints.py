"""REST of checkpoints registered as model versions."""

from __future__ import annotations

import uuid
from typing import Annotated

from django.http import HttpRequest
from ninja import Path, Router, Status

from webapp.experiments.selectors import visible_run
from webapp.projects.permissions import Action, require
from webapp.registry.api.schemas import Checkpoint, VersionDetail
from webapp.registry.checkpoints import register_checkpoint
from webapp.registry.selectors import visible_version
from webapp.rest.queued import STATUS, QueuedOut

router = Router()
Step = Annotated[int, Path(ge=0, lt=2**31)]


@router.post(
    "/{uuid:run_id}/checkpoints/{int:step}/versions",
    response={200: VersionDetail, 201: VersionDetail, STATUS: QueuedOut},
)
def create_version_of_checkpoint(
    request: HttpRequest, run_id: uuid.UUID, step: Step, new: Checkpoint
):
    """Registers the weights of an agent after a step as a version of the model that it started
    from; a run's final weights are registered automatically. 200 if the version exists already, 202
    while others' are checked: repeat the request."""
    run = visible_run(request.user, run_id)
    require(request.user, Action.ADD_MODELS, run.project)
    registered, is_new = register_checkpoint(run, step, new.agent, request.user)
    version = visible_version(request.user, registered.model_id, registered.number)
    return Status(201 if is_new else 200, version)
