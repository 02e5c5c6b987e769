from django.urls import path

from webapp.registry import views

urlpatterns = [
    path("models/", views.models, name="models"),
    path("models/<int:model_id>/", views.model, name="model"),
]
