from django.urls import path

from webapp.offboarding import views

urlpatterns = [
    path("workspaces/<slug:slug>/close/", views.close, name="close-workspace"),
    path("workspaces/<slug:slug>/export/", views.export, name="export-workspace"),
]
