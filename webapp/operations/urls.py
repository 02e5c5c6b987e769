"""Addresses of operators and their machines."""

from django.urls import path

from webapp.operations import views

urlpatterns = [
    path("readyz", views.readyz, name="readyz"),
    path("operations/", views.operations, name="operations"),
    path("metrics", views.exposition, name="metrics"),
]
