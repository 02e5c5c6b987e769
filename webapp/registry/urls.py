from django.urls import path

from webapp.registry import promotion_views, views

urlpatterns = [
    path("models/", views.models, name="models"),
    path("models/new/", views.new_model, name="new-model"),
    path("models/compare/", views.compare, name="compare-versions"),
    path("models/<int:model_id>/", views.model, name="model"),
    path("models/<int:model_id>/delete/", views.delete_model, name="delete-model"),
    path("models/<int:model_id>/promote/", promotion_views.promote, name="promote"),
    path(
        "models/promotions/<int:promotion_id>/decide/",
        promotion_views.decide,
        name="decide-promotion",
    ),
    path("models/<int:model_id>/versions/<int:number>/", views.version, name="version"),
    path("models/<int:model_id>/versions/<int:number>/archive/", views.archive, name="archive"),
    path("models/<int:model_id>/versions/<int:number>/notes/", views.notes, name="version-notes"),
    path(
        "models/<int:model_id>/versions/<int:number>/evaluate/",
        promotion_views.evaluate,
        name="evaluate-version",
    ),
    path(
        "models/<int:model_id>/versions/<int:number>/delete/",
        views.delete_version,
        name="delete-version",
    ),
    path(
        "models/evaluations/<int:evaluation_id>/delete/",
        promotion_views.delete_evaluation,
        name="delete-evaluation",
    ),
    path("runs/<uuid:run_id>/register/", views.register, name="register-checkpoint"),
    path("workspaces/<slug:slug>/second-pair/", promotion_views.second_pair, name="second-pair"),
]
