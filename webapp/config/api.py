"""REST API under /api/v1: one router per app, tokens or sessions with CSRF, problem details."""

from functools import cached_property
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import ValidationError, ValidationErrorContext
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from webapp.accounts.authentication import ActiveSession
from webapp.alerts.api import of_runs as run_alerts
from webapp.alerts.api import router as alerts
from webapp.artifacts.api import router as uploads
from webapp.audit.api import router as audit
from webapp.comments.api import inbox
from webapp.comments.api import router as comments
from webapp.datasets.api.datasets import router as datasets
from webapp.experiments.api.experiments import router as experiments
from webapp.experiments.api.recipes import router as recipes
from webapp.experiments.api.runs import router as runs
from webapp.experiments.api.steering import router as steering
from webapp.experiments.api.tracking import router as tracking
from webapp.exports.api import router as exports
from webapp.idempotency.if_match import conditional
from webapp.offboarding.api import router as closing
from webapp.offboarding.imports.api import router as workspace_imports
from webapp.operations.api import router as operations
from webapp.projects.api import invitations, projects
from webapp.projects.api import router as workspaces
from webapp.registry.api.checkpoints import router as checkpoints
from webapp.registry.api.model_imports import in_project as project_model_imports
from webapp.registry.api.model_imports import router as model_imports
from webapp.registry.api.models import router as models
from webapp.registry.api.promotions import router as promotions
from webapp.registry.api.promotions import workspaces as promotion_rules
from webapp.reports.api import router as reports
from webapp.reports.share_api import router as report_shares
from webapp.rest import problem_details, sparse_fields
from webapp.rest.openapi.examples import add_examples
from webapp.rest.openapi.links import add_links
from webapp.retention.api import workspaces as retention
from webapp.searches.api import in_project as project_searches
from webapp.searches.api import router as searches
from webapp.sharing.api import router as shares
from webapp.sharing.api import shared
from webapp.sharing.comparison_api import router as comparison
from webapp.sharing.comparison_api import shared as shared_comparisons
from webapp.telemetry.api.forest import router as forest
from webapp.telemetry.api.log import router as telemetry
from webapp.telemetry.api.metrics import router as metrics
from webapp.telemetry.api.rollouts import router as rollouts
from webapp.tokens.api import router as tokens
from webapp.tokens.authentication import Bearer


class DocumentedAPI(NinjaAPI):
    """NinjaAPI whose schema also documents each operation's refusals, selectable fields and links.

    An operation's id is the name of its function.
    """

    def get_openapi_operation_id(self, operation: Operation) -> str:
        return operation.view_func.__name__

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        return self._documented[0]  # options are for addresses with a placeholder before them

    @cached_property
    def _documented(self) -> tuple[OpenAPISchema, dict[str, sparse_fields.Shape]]:
        """The schema and its shapes, computed once: it takes a second, and anybody may request
        it."""
        schema = super().get_openapi_schema()
        shapes = sparse_fields.document(schema)
        problem_details.document(schema)
        return add_links(add_examples(schema)), shapes

    def validation_error_from_error_contexts(
        self, error_contexts: list[ValidationErrorContext]
    ) -> ValidationError:
        return problem_details.unreadable(error_contexts)

    def create_response(self, request: HttpRequest, data: Any, **how: Any) -> HttpResponse:
        if request.method == "GET" and sparse_fields.FIELDS in request.GET:
            data = sparse_fields.chosen(self._documented[1], request, data)
        return super().create_response(request, data, **how)


_ABOUT = """Every refusal is problem details (RFC 9457) that name the field, its value and the
remedy. 422: the request does not match this document; 409: it does, but conflicts with the current
state.

Reads have an `ETag`: with `If-None-Match` an unchanged response is 304, and a PATCH or DELETE with
`If-Match` is applied only if the resource is unchanged since the read, else 412 (RFC 9110, 13.1). A
POST with an `Idempotency-Key` is executed once. Lists are paginated by `cursor`, until `next` is
null."""
# Ninja's documentation pages load scripts from a foreign host, so they are off.
api = DocumentedAPI(
    title="Grove",
    version="1",
    description=_ABOUT,
    auth=[Bearer(), ActiveSession()],
    docs_url=None,
)
problem_details.install(api)
api.add_decorator(conditional)
api.add_router("/workspaces", workspaces, tags=["workspaces"])
api.add_router("/workspaces", closing, tags=["workspaces"])
api.add_router("/workspaces", audit, tags=["workspaces"])
api.add_router("/workspaces", retention, tags=["workspaces"])
api.add_router("/workspace-imports", workspace_imports, tags=["workspaces"])
api.add_router("/invitations", invitations, tags=["workspaces"])
api.add_router("/projects", projects, tags=["projects"])
api.add_router("/projects", project_searches, tags=["searches"])
api.add_router("/searches", searches, tags=["searches"])
api.add_router("/experiments", experiments, tags=["experiments"])
api.add_router("/runs", runs, tags=["runs"])
api.add_router("/runs", steering, tags=["runs"])
api.add_router("/runs", tracking, tags=["runs"])
api.add_router("/runs", rollouts, tags=["runs"])
api.add_router("/runs", telemetry, tags=["telemetry"])
api.add_router("/runs", metrics, tags=["telemetry"])
api.add_router("/comparison", comparison, tags=["runs"])
api.add_router("/runs", forest, tags=["telemetry"])
api.add_router("/comments", comments, tags=["comments"])
api.add_router("/inbox", inbox, tags=["comments"])
api.add_router("/alerts", alerts, tags=["alerts"])
api.add_router("/runs", run_alerts, tags=["alerts"])
api.add_router("/operations", operations, tags=["operations"])
api.add_router("/tokens", tokens, tags=["tokens"])
api.add_router("/runs", shares, tags=["shares"])
api.add_router("/shared", shared_comparisons, tags=["shares"])
api.add_router("/shared", shared, tags=["shares"])
api.add_router("/recipes", recipes, tags=["recipes"])
api.add_router("/models", models, tags=["models"])
api.add_router("/models", model_imports, tags=["models"])
api.add_router("/projects", project_model_imports, tags=["models"])
api.add_router("/runs", checkpoints, tags=["models"])
api.add_router("/models", promotions, tags=["models"])
api.add_router("/workspaces", promotion_rules, tags=["workspaces"])
api.add_router("/uploads", uploads, tags=["uploads"])
api.add_router("/datasets", datasets, tags=["datasets"])
api.add_router("/exports", exports, tags=["exports"])
api.add_router("/reports", reports, tags=["reports"])
api.add_router("/reports", report_shares, tags=["shares"])
