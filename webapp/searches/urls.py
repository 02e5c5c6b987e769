from django.urls import path

from webapp.searches import views

urlpatterns = [
    path("searches/", views.searches, name="searches"),
    path("searches/new/", views.new_search, name="new-search"),
    path("searches/new/check/", views.check_search, name="check-search"),
    path("searches/problems/<int:version_id>/", views.problems, name="search-problems"),
]
