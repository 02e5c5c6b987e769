from django.urls import path

from webapp.exports import views

urlpatterns = [
    path("exports/", views.exports, name="exports"),
    path("exports/<uuid:export_id>/remove/", views.remove, name="remove-export"),
]
