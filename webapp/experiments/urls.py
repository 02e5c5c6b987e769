from django.urls import path

from webapp.experiments import views

urlpatterns = [
    path("", views.runs, name="runs"),
    path("runs/new/", views.launch, name="launch"),
    path("runs/marks/", views.mark_runs, name="mark-runs"),
    path("runs/new/check/", views.check_launch, name="check-launch"),
    path("runs/<uuid:run_id>/", views.run, name="run"),
    path("runs/<uuid:run_id>/about/", views.about_run, name="about-run"),
    path("runs/<uuid:run_id>/stop/", views.stop, name="stop-run"),
    path("runs/<uuid:run_id>/resume/", views.resume, name="resume-run"),
    path("runs/<uuid:run_id>/kill/", views.kill, name="kill-run"),
    path("runs/<uuid:run_id>/priority/", views.priority, name="run-priority"),
    path("runs/<uuid:run_id>/note/", views.note, name="run-note"),
]
