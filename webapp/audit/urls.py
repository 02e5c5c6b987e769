from django.urls import path

from webapp.audit import views

urlpatterns = [
    path("workspaces/<slug:slug>/audit/", views.audit, name="audit"),
    path("workspaces/<slug:slug>/audit/file/", views.audit_file, name="audit-file"),
]
