from django.urls import path

from webapp.experiments import views

urlpatterns = [
    path("", views.runs, name="runs"),
    path("runs/new/", views.launch, name="launch"),
    path("runs/marks/", views.mark_runs, name="mark-runs"),
    path("runs/<uuid:run_id>/", views.run, name="run"),
    path("runs/<uuid:run_id>/about/", views.about_run, name="about-run"),
    path("runs/<uuid:run_id>/stop/", views.stop, name="stop-run"),
    path("runs/<uuid:run_id>/resume/", views.resume, name="resume-run"),
]
