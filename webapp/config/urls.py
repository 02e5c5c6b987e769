"""URL routes: pages at the root, REST under /api/v1. The stream (/stream) is in asgi.py."""

from django.urls import include, path

from webapp.config.api import api
from webapp.config.api_reference import reference
from webapp.http import error_pages

handler400 = "webapp.http.error_pages.bad_request"
handler403 = "webapp.http.error_pages.permission_denied"
handler404 = "webapp.http.error_pages.not_found"
handler429 = "webapp.http.error_pages.too_many_requests"  # allauth uses it; Django does not
handler500 = "webapp.http.error_pages.server_error"

urlpatterns = [
    path("", include("webapp.operations.urls")),
    path("healthz", error_pages.healthz, name="healthz"),
    path("api/", reference, name="reference"),
    path("api/v1/", api.urls),
    path("", include("webapp.accounts.urls")),
    path("", include("webapp.tokens.urls")),
    path("", include("webapp.projects.urls")),
    path("", include("webapp.audit.urls")),
    path("", include("webapp.offboarding.urls")),
    path("", include("webapp.comments.urls")),
    path("", include("webapp.alerts.urls")),
    path("", include("webapp.experiments.urls")),
    path("", include("webapp.retention.urls")),
    path("", include("webapp.comparison.urls")),
    path("", include("webapp.telemetry.urls")),
    path("", include("webapp.exports.urls")),
    path("", include("webapp.sharing.urls")),
    path("", include("webapp.registry.urls")),
    path("", include("webapp.reports.urls")),
    path("", include("webapp.searches.urls")),
    path("", include("webapp.datasets.urls")),
    path("", include("webapp.config.parents")),
]
