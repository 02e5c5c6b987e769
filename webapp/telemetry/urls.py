from django.urls import path

from webapp.telemetry import views

urlpatterns = [
    path("charts/", views.charts, name="charts"),
    path("compare/trees/", views.compare_trees, name="compare-trees"),
    path("runs/<uuid:run_id>/log/", views.log, name="log"),
]
