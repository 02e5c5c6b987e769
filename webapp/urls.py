"""Addresses: pages at the root, REST under /api/v1. The stream (/stream) is in asgi.py."""

from django.urls import include, path

from webapp import views
from webapp.api import api
from webapp.reference import reference

handler400 = "webapp.views.bad_request"
handler403 = "webapp.views.permission_denied"
handler404 = "webapp.views.not_found"
handler429 = "webapp.views.too_many_requests"  # allauth asks for it; Django does not
handler500 = "webapp.views.server_error"

urlpatterns = [
    path("healthz", views.healthz, name="healthz"),
    path("api/", reference, name="reference"),
    path("api/v1/", api.urls),
    path("", include("webapp.accounts.urls")),
    path("", include("webapp.projects.urls")),
    path("", include("webapp.audit.urls")),
    path("", include("webapp.closing.urls")),
    path("", include("webapp.comments.urls")),
    path("", include("webapp.experiments.urls")),
    path("", include("webapp.telemetry.urls")),
    path("", include("webapp.exports.urls")),
    path("", include("webapp.sharing.urls")),
    path("", include("webapp.registry.urls")),
    path("", include("webapp.searches.urls")),
    path("", include("webapp.datasets.urls")),
    path("", include("webapp.parents")),
]
