from django.urls import path

from webapp.registry.views import model_imports, models, promotions

urlpatterns = [
    path("models/", models.models, name="models"),
    path("models/new/", models.new_model, name="new-model"),
    path("models/pretrained/", model_imports.pretrained, name="pretrained-models"),
    path(
        "models/imports/<int:import_id>/cancel/", model_imports.cancel, name="cancel-model-import"
    ),
    path("models/imports/<int:import_id>/retry/", model_imports.retry, name="retry-model-import"),
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
