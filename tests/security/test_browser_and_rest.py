"""Tests of parity: what a page shows or does, REST reports or does too, by some operation.

`tests/security/test_walk.py` checks the rows of `rules.py`, from which the pages are taken, against
the resolver and against the methods that each address accepts.
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
    "notifications": ("change_alert_preferences",),
    "test-notifications": ("send_test_notification",),
    "add-alert-rule": ("create_alert_rule",),
    "change-alert-rule": ("change_alert_rule",),
    "delete-alert-rule": ("delete_alert_rule",),
    "add-alert-channel": ("create_alert_channel",),
    "change-alert-channel": ("act_on_alert_channel", "delete_alert_channel"),
    "mute-run": ("mute_run",),
    "launch": ("create_run", "create_experiment_of_runs", "clone_run", "fork_run"),
    "check-launch": ("check_experiment", "list_presets", "list_settings"),
    "stop-run": ("stop_run",),
    "resume-run": ("resume_run",),
    "kill-run": ("kill_run",),
    "delete-run": ("delete_run",),
    "retention": ("change_retention",),
    "run-priority": ("set_priority",),
    "run-note": ("write_note",),
    "mark-runs": ("mark_run",),
    "about-run": ("mark_run",),
    "shares": ("create_share",),
    "revoke-share": ("revoke_share",),
    "comparison-shares": ("share_comparison",),
    "revoke-comparison-share": ("unshare_comparison",),
    "exports": ("create_export",),
    "new-report": ("create_report",),
    "edit-report": ("change_report",),
    "delete-report": ("delete_report",),
    "report-shares": ("share_report",),
    "revoke-report-share": ("unshare_report",),
    "remove-export": ("delete_export",),
    "pretrained-models": ("create_model_import",),
    "confirm-workspace-import": ("confirm_workspace_import",),
    "cancel-workspace-import": ("cancel_workspace_import",),
    "retry-workspace-import": ("retry_workspace_import",),
    "cancel-model-import": ("cancel_model_import",),
    "retry-model-import": ("retry_model_import",),
    "version-notes": ("change_version",),
    "evaluate-version": ("create_model_evaluation",),
    "delete-evaluation": ("delete_model_evaluation",),
    "register-checkpoint": ("create_version_of_checkpoint",),
    "delete-version": ("delete_version",),
    "delete-model": ("delete_model",),
    "promote": ("create_promotion",),
    "decide-promotion": ("approve_promotion", "refuse_promotion"),
    "second-pair": ("change_second_pair",),
    "new-search": ("create_search_in_project",),
    "check-search": ("check_search_in_project", "list_search_members"),
    "cancel-dataset-report": ("cancel_dataset_report",),
    "check-dataset": ("start_dataset_validation",),
    "derive-dataset": ("derive_dataset_version",),
    "delete-dataset": ("delete_dataset_version",),
    "compare-dataset": ("start_dataset_overlap",),
}
"""{name of a form's address: operations that do the same}."""


TOLD_BY_REST = {
    "tokens": ("list_tokens",),
    "workspaces": ("list_workspaces",),
    "workspace": ("get_workspace", "list_members", "list_invitations", "list_projects",
                  "get_second_pair"),
    "close-workspace": ("get_workspace",),
    "export-workspace": ("export_workspace",),
    "audit": ("list_audit_entries",),
    "audit-file": ("get_audit_file",),
    "workspace-imports": ("list_workspace_imports", "get_workspace_import", "list_workspaces",
                          "create_upload", "append_to_upload", "finish_upload",
                          "create_workspace_import"),
    "operations": ("get_operations",),
    "delete-run": ("get_run_deletion",),
    "retention": ("get_retention",),
    "comments": ("list_comments",),
    "edit-comment": ("list_comments",),
    "inbox": ("list_notices",),
    "notifications": ("get_alert_preferences", "list_alert_rules", "list_alert_channels",
                      "list_alerts"),
    "change-alert-rule": ("get_alert_rule",),
    "project-alerts": ("list_alert_rules", "list_alert_channels", "list_alerts"),
    "runs": ("list_runs", "list_experiments", "get_experiment"),
    "run": ("get_run", "get_state", "get_folded", "get_moments", "get_events", "get_step_trees",
            "get_tree", "get_node", "list_trees", "list_nodes", "list_steps", "list_evaluations",
            "get_actions", "get_checkpoints", "get_search", "get_answer", "list_logged"),
    "about-run": ("get_run",),
    "compare": ("compare_runs",),
    "compare-trees": ("get_tree",),
    "charts": ("list_metrics", "get_metric", "list_points"),
    "log": ("list_log_lines",),
    "launch": ("list_recipes", "list_presets", "list_settings"),
    "shares": ("list_shares",),
    "comparison-shares": ("list_comparison_shares",),
    "reports": ("list_reports",),
    "new-report": ("list_projects",),
    "report": ("get_report",),
    "edit-report": ("get_report",),
    "report-history": ("list_report_versions",),
    "export-report": ("get_report_file",),
    "report-shares": ("list_report_shares",),
    "exports": ("list_exports", "get_export", "get_export_file"),
    "models": ("list_models", "list_model_imports", "get_model_import"),
    "pretrained-models": ("list_pretrained_models",),
    "model": ("get_model", "list_versions", "list_promotions"),
    "new-model": ("create_upload", "append_to_upload", "finish_upload", "create_version"),
    "version": ("get_version", "get_card", "list_model_evaluations", "get_model_evaluation"),
    "compare-versions": ("compare_versions",),
    "archive": ("get_archive",),
    "searches": ("list_searches",),
    "new-search": ("list_search_members",),
    "search-problems": ("list_search_problems",),
    "datasets": ("list_datasets", "create_upload", "create_dataset_version"),
    "dataset": ("get_dataset",),
    "dataset-version": ("get_dataset_version", "list_dataset_problems", "list_dataset_uses",
                        "get_dataset_splits", "get_dataset_difficulty", "get_dataset_validation",
                        "get_dataset_content"),
    "dataset-problem": ("get_dataset_problem",),
    "dataset-report": ("get_dataset_report",),
}  # fmt: skip
"""{name of a page's address: operations that return the same data}."""
OF_NOBODY = {"healthz", "readyz", "metrics", "reference", "invitation", "shared",
             "shared-comparison", "shared-report", "sign-in-link"}  # fmt: skip
"""Pages without data of a project, or for visitors with a link."""


def pages(method: str) -> set[str]:
    rows = (row for row in ROWS if row.method == method and not row.name.startswith("api-"))
    return {row.name for row in rows}


def test_everything_that_a_form_of_the_browser_does_an_operation_of_rest_does():
    assert pages("post") - IN_PERSON == BY_REST.keys()
    assert pages("post") > IN_PERSON
    known = {operation["operationId"] for _, _, operation in operations()}
    assert {one for names in BY_REST.values() for one in names} <= known


def test_rest_returns_everything_that_a_browser_page_shows():
    of_no_project = ("account_", "mfa_", "socialaccount_", "openid_connect_", "above-")
    shown = {name for name in pages("get") if not name.startswith(of_no_project)}
    assert shown - OF_NOBODY == TOLD_BY_REST.keys() and shown > OF_NOBODY
    known = {operation["operationId"] for _, _, operation in operations()}
    assert {one for names in TOLD_BY_REST.values() for one in names} <= known
