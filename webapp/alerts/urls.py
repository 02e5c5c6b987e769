from django.urls import path

from webapp.alerts import views

urlpatterns = [
    path("notifications/", views.notifications, name="notifications"),
    path("notifications/test/", views.test_notifications, name="test-notifications"),
    path("notifications/rules/", views.add_rule, name="add-alert-rule"),
    path("notifications/rules/<int:rule_id>/", views.change_rule, name="change-alert-rule"),
    path("notifications/rules/<int:rule_id>/delete/", views.delete_rule, name="delete-alert-rule"),
    path("notifications/channels/", views.add_channel, name="add-alert-channel"),
    path(
        "notifications/channels/<int:channel_id>/",
        views.change_channel,
        name="change-alert-channel",
    ),
    path("projects/<int:project_id>/alerts/", views.project_alerts, name="project-alerts"),
    path("runs/<uuid:run_id>/mute/", views.mute_run, name="mute-run"),
]
