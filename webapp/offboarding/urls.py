from django.urls import path

from webapp.offboarding import views
from webapp.offboarding.imports import views as imports

_IMPORT = "workspace-imports/<int:workspace_import_id>"

urlpatterns = [
    path("workspaces/<slug:slug>/close/", views.close, name="close-workspace"),
    path("workspaces/<slug:slug>/export/", views.export, name="export-workspace"),
    path("workspace-imports/", imports.imports, name="workspace-imports"),
    path(f"{_IMPORT}/confirm/", imports.confirm, name="confirm-workspace-import"),
    path(f"{_IMPORT}/cancel/", imports.cancel, name="cancel-workspace-import"),
    path(f"{_IMPORT}/retry/", imports.retry, name="retry-workspace-import"),
]
