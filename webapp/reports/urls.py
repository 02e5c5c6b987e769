from django.urls import path

from webapp.reports import share_views, views

urlpatterns = [
    path("reports/", views.reports, name="reports"),
    path("reports/new/", views.new_report, name="new-report"),
    path("reports/<int:report_page_id>/", views.report, name="report"),
    path("reports/<int:report_page_id>/edit/", views.edit_report, name="edit-report"),
    path("reports/<int:report_page_id>/history/", views.history, name="report-history"),
    path("reports/<int:report_page_id>/export/", views.export_report, name="export-report"),
    path("reports/<int:report_page_id>/delete/", views.delete_report, name="delete-report"),
    path("reports/<int:report_page_id>/shares/", share_views.shares, name="report-shares"),
    path(
        "reports/<int:report_page_id>/shares/<int:share_id>/revoke/",
        share_views.revoke,
        name="revoke-report-share",
    ),
    path("shared/report/<str:secret>/", share_views.shared, name="shared-report"),
]
