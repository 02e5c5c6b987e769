from django.urls import path

from webapp.datasets import views

urlpatterns = [
    path("datasets/", views.datasets, name="datasets"),
    path("datasets/<int:dataset_id>/", views.dataset, name="dataset"),
    path(
        "datasets/versions/<int:dataset_version_id>/", views.dataset_version, name="dataset-version"
    ),
    path(
        "datasets/versions/<int:dataset_version_id>/problems/<int:number>/",
        views.dataset_problem,
        name="dataset-problem",
    ),
    path(
        "datasets/versions/<int:dataset_version_id>/check/",
        views.check_dataset,
        name="check-dataset",
    ),
    path(
        "datasets/versions/<int:dataset_version_id>/derive/",
        views.derive_dataset,
        name="derive-dataset",
    ),
    path(
        "datasets/versions/<int:dataset_version_id>/delete/",
        views.delete_dataset,
        name="delete-dataset",
    ),
    path(
        "datasets/versions/<int:dataset_version_id>/overlap/",
        views.compare_dataset,
        name="compare-dataset",
    ),
    path("datasets/reports/<int:report_id>/", views.dataset_report, name="dataset-report"),
    path(
        "datasets/reports/<int:report_id>/cancel/",
        views.cancel_report,
        name="cancel-dataset-report",
    ),
]
