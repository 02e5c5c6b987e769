from django.urls import path

from webapp.sharing import views

urlpatterns = [
    path("runs/<uuid:run_id>/shares/", views.shares, name="shares"),
    path("runs/<uuid:run_id>/shares/<int:share_id>/revoke/", views.revoke, name="revoke-share"),
    path("shared/<str:secret>/", views.shared, name="shared"),
]
