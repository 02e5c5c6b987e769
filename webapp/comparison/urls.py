from django.urls import path

from webapp.comparison import views

urlpatterns = [path("compare/", views.compare, name="compare")]
