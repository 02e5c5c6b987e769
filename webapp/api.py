"""The REST API under /api/v1: one router per app, sessions with CSRF, problem details."""

from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.security import SessionAuth

from webapp import problems
from webapp.datasets.api import router as datasets
from webapp.experiments.api import recipes
from webapp.experiments.api import router as runs
from webapp.registry.api import router as models
from webapp.telemetry.api import router as telemetry


class ActiveSession(SessionAuth):
    """The session of somebody who is signed in and whose account is open."""

    def authenticate(self, request, key):
        return request.user if request.user.is_authenticated and request.user.is_active else None


class DocumentedAPI(NinjaAPI):
    """Its schema also tells how each operation refuses."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        problems.document(schema)
        return schema


# Its own pages of documentation load scripts from a foreign host: off.
api = DocumentedAPI(title="Grove", version="1", auth=ActiveSession(), docs_url=None)
problems.install(api)
api.add_router("/runs", runs, tags=["runs"])
api.add_router("/runs", telemetry, tags=["telemetry"])
api.add_router("/recipes", recipes, tags=["recipes"])
api.add_router("/models", models, tags=["models"])
api.add_router("/datasets", datasets, tags=["datasets"])
