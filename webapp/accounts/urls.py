"""Routes of sign-in and accounts. Of allauth only the views listed here are reachable."""

from allauth.account import views as account
from allauth.mfa.base import views as factors
from allauth.mfa.recovery_codes import views as codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as passkeys
from allauth.socialaccount import views as social
from allauth.socialaccount.providers.openid_connect import views as provider
from django.urls import path, re_path
from django.views.decorators.http import require_POST

from webapp.accounts import views
from webapp.accounts.gates import forms, pages, with_lockout_status, with_mail, with_provider

_RESET_KEY = r"^account/password/reset/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$"
_CONFIRM_KEY = r"^account/email/confirm/(?P<key>[-:\w]+)/$"

urlpatterns = [
    path("sign-in/", forms(with_lockout_status(account.login)), name="account_login"),
    path("sign-in/code/", forms(factors.authenticate), name="mfa_authenticate"),
    path("sign-in/passkey/", forms(passkeys.login_webauthn), name="mfa_login_webauthn"),
    path("sign-in/<str:token>/", views.sign_in_link, name="sign-in-link"),
    path("sign-out/", require_POST(account.logout), name="account_logout"),
    path("sign-up/", forms(account.signup), name="account_signup"),
    path("account/", pages(factors.index), name="mfa_index"),
    path("account/closed/", pages(account.account_inactive), name="account_inactive"),
    path("account/confirm/", forms(account.reauthenticate), name="account_reauthenticate"),
    path("account/confirm/code/", forms(factors.reauthenticate), name="mfa_reauthenticate"),
    path(
        "account/confirm/passkey/",
        forms(passkeys.reauthenticate_webauthn),
        name="mfa_reauthenticate_webauthn",
    ),
    path("account/password/", forms(account.password_change), name="account_change_password"),
    path("account/password/first/", forms(account.password_set), name="account_set_password"),
    path(
        "account/password/forgotten/",
        forms(with_mail(account.password_reset)),
        name="account_reset_password",
    ),
    path(
        "account/password/sent/",
        pages(with_mail(account.password_reset_done)),
        name="account_reset_password_done",
    ),
    re_path(
        _RESET_KEY,
        forms(with_mail(account.password_reset_from_key)),
        name="account_reset_password_from_key",
    ),
    path(
        "account/password/done/",
        pages(with_mail(account.password_reset_from_key_done)),
        name="account_reset_password_from_key_done",
    ),
    path("account/email/", forms(with_mail(account.email)), name="account_email"),
    path(
        "account/email/sent/",
        pages(with_mail(account.email_verification_sent)),
        name="account_email_verification_sent",
    ),
    re_path(_CONFIRM_KEY, forms(with_mail(account.confirm_email)), name="account_confirm_email"),
    path("account/app/", forms(totp.activate_totp), name="mfa_activate_totp"),
    path("account/app/remove/", forms(totp.deactivate_totp), name="mfa_deactivate_totp"),
    path("account/codes/", pages(codes.view_recovery_codes), name="mfa_view_recovery_codes"),
    path(
        "account/codes/new/",
        forms(codes.generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
    path(
        "account/codes/file/",
        pages(codes.download_recovery_codes),
        name="mfa_download_recovery_codes",
    ),
    path("account/passkeys/", pages(passkeys.list_webauthn), name="mfa_list_webauthn"),
    path("account/passkeys/new/", forms(passkeys.add_webauthn), name="mfa_add_webauthn"),
    path(
        "account/passkeys/<int:pk>/remove/",
        forms(passkeys.remove_webauthn),
        name="mfa_remove_webauthn",
    ),
    path("account/passkeys/<int:pk>/", forms(passkeys.edit_webauthn), name="mfa_edit_webauthn"),
    path(
        "account/provider/",
        forms(with_provider(social.connections)),
        name="socialaccount_connections",
    ),
    path("sign-up/provider/", forms(with_provider(social.signup)), name="socialaccount_signup"),
    path(
        "account/provider/cancelled/",
        pages(with_provider(social.login_cancelled)),
        name="socialaccount_login_cancelled",
    ),
    path(
        "account/provider/error/",
        pages(with_provider(social.login_error)),
        name="socialaccount_login_error",
    ),
    path(
        "account/provider/<str:provider_id>/",
        forms(with_provider(provider.login)),
        name="openid_connect_login",
    ),
    path(
        "account/provider/<str:provider_id>/callback/",
        pages(with_provider(provider.callback)),
        name="openid_connect_callback",
    ),
]
