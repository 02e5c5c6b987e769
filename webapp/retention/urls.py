from django.urls import path

from webapp.retention import views

urlpatterns = [
    path("runs/<uuid:run_id>/delete/", views.delete, name="delete-run"),
    path("workspaces/<slug:slug>/retention/", views.retention, name="retention"),
]
