from django.urls import path

from webapp.datasets import views

urlpatterns = [path("datasets/", views.datasets, name="datasets")]
