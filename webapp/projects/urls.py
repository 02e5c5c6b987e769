from django.urls import path

from webapp.projects import views

urlpatterns = [
    path("workspaces/", views.workspaces, name="workspaces"),
    path("workspaces/<slug:slug>/", views.workspace, name="workspace"),
    path("workspaces/<slug:slug>/projects/", views.add_project, name="add-project"),
    path("workspaces/<slug:slug>/invitations/", views.invite, name="invite"),
    path(
        "workspaces/<slug:slug>/invitations/<int:invitation_id>/revoke/",
        views.revoke_invitation,
        name="revoke-invitation",
    ),
    path("workspaces/<slug:slug>/leave/", views.leave, name="leave-workspace"),
    path("workspaces/<slug:slug>/members/<int:user_id>/role/", views.change_role, name="role"),
    path(
        "workspaces/<slug:slug>/members/<int:user_id>/remove/", views.remove, name="remove-member"
    ),
    path(
        "workspaces/<slug:slug>/members/<int:user_id>/transfer/",
        views.transfer,
        name="transfer-workspace",
    ),
    path("projects/<int:project_id>/visibility/", views.visibility, name="project-visibility"),
    path("invitations/<str:token>/", views.invitation, name="invitation"),
]
