"""What a form of the browser does, an operation of REST does, too: a form without one fails here.

`tests/security/test_walk.py` holds the rows of `rules.py`, from which the forms are taken, against
the resolver and against the methods that each address takes.
"""

from tests.security.rules import ROWS
from tests.security.test_schema_fuzz import operations

IN_PERSON = {
    "account_login", "account_logout", "account_signup", "account_reauthenticate",
    "account_change_password", "account_set_password", "account_reset_password",
    "account_reset_password_from_key", "account_email", "account_confirm_email",
    "mfa_authenticate", "mfa_login_webauthn", "mfa_reauthenticate", "mfa_reauthenticate_webauthn",
    "mfa_activate_totp", "mfa_deactivate_totp", "mfa_generate_recovery_codes", "mfa_add_webauthn",
    "mfa_edit_webauthn", "mfa_remove_webauthn", "socialaccount_connections",
    "socialaccount_signup", "openid_connect_login",
}  # fmt: skip
"""How a person proves who they are: nothing that a program does for them."""

BY_REST = {
    "tokens": ("create_token",),
    "revoke-token": ("delete_token",),
    "workspaces": ("create_workspace",),
    "add-project": ("create_project",),
    "project-visibility": ("change_project",),
    "invite": ("create_invitation",),
    "revoke-invitation": ("delete_invitation",),
    "invitation": ("accept_invitation",),
    "leave-workspace": ("delete_member",),
    "role": ("change_member",),
    "remove-member": ("delete_member",),
    "transfer-workspace": ("transfer_workspace",),
    "close-workspace": ("delete_workspace",),
    "comments": ("create_comment",),
    "edit-comment": ("change_comment",),
    "delete-comment": ("delete_comment",),
    "read-inbox": ("mark_notices_read",),
    "open-notice": ("mark_notices_read",),
    "launch": ("create_run", "create_experiment_of_runs", "clone_run", "fork_run"),
    "check-launch": ("check_experiment", "list_presets", "list_settings"),
    "stop-run": ("stop_run",),
    "resume-run": ("resume_run",),
    "kill-run": ("kill_run",),
    "run-priority": ("set_priority",),
    "run-note": ("write_note",),
    "mark-runs": ("mark_run",),
    "about-run": ("mark_run",),
    "shares": ("create_share",),
    "revoke-share": ("revoke_share",),
    "comparison-shares": ("share_comparison",),
    "revoke-comparison-share": ("unshare_comparison",),
    "exports": ("create_export",),
    "remove-export": ("delete_export",),
    "version-notes": ("change_version",),
    "evaluate-version": ("create_model_evaluation",),
    "delete-evaluation": ("delete_model_evaluation",),
    "delete-version": ("delete_version",),
    "delete-model": ("delete_model",),
    "promote": ("create_promotion",),
    "decide-promotion": ("approve_promotion", "refuse_promotion"),
    "second-pair": ("change_second_pair",),
    "new-search": ("create_search_in_project",),
    "check-search": ("check_search_in_project", "list_search_members"),
    "check-dataset": ("start_dataset_validation",),
    "derive-dataset": ("derive_dataset_version",),
    "delete-dataset": ("delete_dataset_version",),
    "compare-dataset": ("start_dataset_overlap",),
}
"""Name of each form's address: operations that do the same."""


def test_everything_that_a_form_of_the_browser_does_an_operation_of_rest_does():
    forms = {row.name for row in ROWS if row.method == "post" and not row.name.startswith("api-")}
    assert forms - IN_PERSON == BY_REST.keys()
    assert forms > IN_PERSON
    known = {operation["operationId"] for _, _, operation in operations()}
    assert {one for names in BY_REST.values() for one in names} <= known
