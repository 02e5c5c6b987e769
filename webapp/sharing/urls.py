from django.urls import path

from webapp.sharing import comparison_views, views

urlpatterns = [
    path("runs/<uuid:run_id>/shares/", views.shares, name="shares"),
    path("runs/<uuid:run_id>/shares/<int:share_id>/revoke/", views.revoke, name="revoke-share"),
    path("compare/shares/", comparison_views.comparison_shares, name="comparison-shares"),
    path(
        "compare/shares/<int:share_id>/revoke/",
        comparison_views.revoke_comparison_share,
        name="revoke-comparison-share",
    ),
    path(
        "shared/comparison/<str:secret>/",
        comparison_views.shared_comparison,
        name="shared-comparison",
    ),
    path("shared/<str:secret>/", views.shared, name="shared"),
]
