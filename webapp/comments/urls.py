from django.urls import path

from webapp.comments import views

urlpatterns = [
    path("comments/", views.comments, name="comments"),
    path("comments/<int:comment_id>/edit/", views.edit, name="edit-comment"),
    path("comments/<int:comment_id>/delete/", views.delete, name="delete-comment"),
    path("inbox/", views.inbox, name="inbox"),
    path("inbox/read/", views.read, name="read-inbox"),
    path("inbox/<int:notice_id>/", views.open_notice, name="open-notice"),
]
