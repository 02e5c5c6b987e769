from django.urls import path

from webapp.registry.views import models, promotions

urlpatterns = [
    path("models/", models.models, name="models"),
    path("models/new/", models.new_model, name="new-model"),
    path("models/compare/", models.compare, name="compare-versions"),
    path("models/<int:model_id>/", models.model, name="model"),
    path("models/<int:model_id>/delete/", models.delete_model, name="delete-model"),
    path("models/<int:model_id>/promote/", promotions.promote, name="promote"),
    path(
        "models/promotions/<int:promotion_id>/decide/",
        promotions.decide,
        name="decide-promotion",
    ),
    path("models/<int:model_id>/versions/<int:number>/", models.version, name="version"),
    path("models/<int:model_id>/versions/<int:number>/archive/", models.archive, name="archive"),
    path("models/<int:model_id>/versions/<int:number>/notes/", models.notes, name="version-notes"),
    path(
        "models/<int:model_id>/versions/<int:number>/evaluate/",
        promotions.evaluate,
        name="evaluate-version",
    ),
    path(
        "models/<int:model_id>/versions/<int:number>/delete/",
        models.delete_version,
        name="delete-version",
    ),
    path(
        "models/evaluations/<int:evaluation_id>/delete/",
        promotions.delete_evaluation,
        name="delete-evaluation",
    ),
    path("runs/<uuid:run_id>/register/", models.register, name="register-checkpoint"),
    path("workspaces/<slug:slug>/second-pair/", promotions.second_pair, name="second-pair"),
]
