"""The real server with the cast's objects in its database, for tools that test it from outside.

With `known`, placeholders are filled with objects of Alice's project, so that requests get past "no
such thing"; otherwise the tool generates them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import schemathesis.cli
from click.testing import CliRunner
from schemathesis.config import SchemathesisConfig

from engine.events.vocabulary import RunState
from tests.contract import hooks
from tests.helpers.builders import (
    Cast,
    a_held_run,
    a_registry,
    a_run,
    a_search,
    a_token,
    an_event,
)
from tests.helpers.datasets import stored_version
from tests.helpers.waiting import patience
from tests.helpers.workspace_zips import a_checked_import
from webapp.accounts.models import Scope
from webapp.artifacts.models import Upload
from webapp.artifacts.services import begin
from webapp.comments.services import write_comment
from webapp.comments.targets import Target
from webapp.datasets.models import DatasetVersion
from webapp.datasets.reports import request_validation
from webapp.experiments.models import Run
from webapp.experiments.runs_list.listing import RunQuery
from webapp.exports.models import Format, Table
from webapp.exports.services import request_export
from webapp.registry.model_imports.requests import request_package
from webapp.reports.services import Draft, create_report
from webapp.telemetry.ingest.ingest import ingest

# The checks repeat every case without a token and with a wrong one; the fuzzing does so too, for
# every operation.
_LEFT_OUT_OF_COVERAGE = "ignored_auth"
TOO_LONG = "413"
"""The refusal of a body above the longest, valid or not: the document names it for every body, the
tool does not expect it of itself."""


@dataclass(frozen=True)
class Site:
    """A served address, token secrets by holder, and a run with one tree."""

    url: str
    secrets: dict[str, str]
    run: Run
    export: uuid.UUID
    version: DatasetVersion
    registry: dict[str, int]
    """The id of a model, the number of its version, the ids of a promotion and of an evaluation."""
    model_import: int
    comment: int
    search: uuid.UUID
    """The id of the search's run."""
    upload: uuid.UUID
    other: Run
    """A run that has finished."""
    report_page: int
    measured: int
    """The id of a dataset version that models are measured on."""
    workspace_import: int

    def beginnings(self) -> dict[str, Callable[[], dict[str, Any]]]:
        """Returns, by operation, a factory of requests that create or list objects."""
        project, run = self.run.project, str(self.run.pk)
        of_run, of_version = {"run_id": run}, {"dataset_version_id": self.version.pk}
        of_model = {"model_id": self.registry["model_id"]}
        number, dataset = {"number": self.registry["number"]}, {"dataset_version": self.measured}
        moved = {"alias": "champion", "version": 1, "reason": "It is better."}
        bodies: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
            "/workspaces/{slug}/projects": ({"name": "Elms"}, {"slug": project.workspace.slug}),
            "/runs": ({"project": project.pk, "recipe": "demo"}, {}),
            "/runs/{run_id}/clone": ({}, of_run),
            "/runs/{run_id}/shares": ({"days": 1}, of_run),
            "/experiments": ({"project": project.pk, "recipe": "demo", "seeds": [1, 2]}, {}),
            "/comments": ({"run": [run], "text": "See *this*."}, {}),
            "/comparison/shares": ({"run": [run, str(self.other.pk)]}, {}),
            "/reports": ({"project": project.pk, "title": "Trees", "text": "They *help*."}, {}),
            "/exports": ({"run": run, "table": "nodes", "format": "jsonl"}, {}),
            "/uploads": ({"project": project.pk, "kind": "dataset", "name": "a", "size": 3}, {}),
            "/models": ({"project": project.pk}, {}),
            "/projects/{project_id}/model-imports": (
                {"package": "smollm2", "name": "smol"},
                {"project_id": project.pk},
            ),
            "/models/{model_id}/promotions": (moved, of_model),
            "/models/{model_id}/versions/{number}/evaluations": (dataset, of_model | number),
            "/datasets/versions/{dataset_version_id}/overlaps": (
                {"other": self.version.pk},
                of_version,
            ),
        }

        def making(path: str, body: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
            fresh = {"name": f"m{uuid.uuid4().hex}"} if path == "/models" else {}
            extra = {"body": body | fresh, "media_type": "application/json"} if body else {}
            return {"path_parameters": named, **extra}

        results: dict[str, Callable[[], dict[str, Any]]] = {
            f"POST /api/v1{path}": partial(making, path, *requested)
            for path, requested in bodies.items()
        }
        for name in ("datasets", "recipes"):
            results[f"GET /api/v1/{name}"] = dict
        return results


def furnish(url: str, cast: Cast) -> Site:
    """Creates a run with a node, and the tokens."""
    run, fencing = a_held_run(cast, seconds=3600)
    planted = {"step": 1, "problem": "p", "statement": "s"}
    opened = {"agent": "oak", "parent": 0, "depth": 1, "draws": {}}
    events = [
        an_event(1, "tree.open", tree=1, **planted),
        an_event(2, "node.open", tree=1, node=1, **opened),
    ]
    ingest(run.pk, fencing, events)
    version = stored_version(cast, faulty=0)
    request_validation(version, cast.alice)
    workspace, other = cast.project.workspace, cast.charlie.memberships.get().workspace
    secrets = {
        "an owner": a_token(cast.alice, workspace, Scope.ADMIN),
        "a viewer": a_token(cast.vera, workspace, Scope.RUNS_READ),
        "a stranger": a_token(cast.charlie, other, Scope.ADMIN),
    }
    comment = write_comment(Target((run,)), cast.alice, "It learns.", url)
    export = request_export(run.project, cast.alice, Table.RUNS, Format.CSV, RunQuery())
    upload = begin(cast.project, cast.alice, Upload.Kind.DATASET, "a.jsonl", 3)
    model_import = request_package(cast.project, "smollm2", cast.alice).pk
    made = (
        export.pk,
        version,
        a_registry(cast),
        model_import,
        comment.pk,
        a_search(cast).run_id,
        upload.pk,
    )
    measured = DatasetVersion.objects.get(dataset__name="measured").pk
    page = create_report(cast.project, cast.alice, Draft("Trees", "They *help*.", url))
    made = *made, a_run(cast, RunState.FINISHED), page.pk, measured, a_checked_import(cast).pk
    return Site(url, secrets, run, *made)


def request_every_operation(
    site: Site, who: str, directory: Path, *, known: bool, phases: str, examples: int, seed: int
) -> str:
    """Runs schemathesis over the whole document as `who` (or unauthenticated), about `known` or
    generated objects. Returns "" if every response conforms to the document, otherwise the report.

    It runs in this process, which builds its view of the document once for all runs.
    """
    hooks.begin(known=known)
    config = directory / "schemathesis.toml"
    config.write_text(_configuration(site if known else None))
    document = directory / "openapi.json"  # the tool would wait for it for ten seconds
    document.write_bytes(
        httpx.get(f"{site.url}/api/v1/openapi.json", timeout=30 * patience()).content
    )
    secret = site.secrets.get(who)
    left_out = _LEFT_OUT_OF_COVERAGE if "coverage" in phases else ""
    results = [
        *("--config-file", str(config)),
        *("run", str(document), "--url", site.url, "--phases", phases, "--no-color"),
        *("--max-examples", str(examples), "--seed", str(seed), "--workers", "1"),
        *(("--exclude-checks", left_out) if left_out else ()),
        *("--suppress-health-check", "all", "--no-shrink"),
        *(
            "--continue-on-failure",
            "--request-timeout",
            f"{30 * patience():.0f}",
            "--warnings",
            "off",
        ),
        *(("--header", f"Authorization: Bearer {secret}") if secret else ()),
    ]
    with chdir(directory):
        requested = CliRunner().invoke(
            schemathesis.cli.schemathesis, results, catch_exceptions=False
        )
    return f"exit code {requested.exit_code}\n{requested.output}" if requested.exit_code else ""


def expected_refusals() -> str:
    """The tool's configuration of the refusals that the document names."""
    checks, lines = SchemathesisConfig().projects.default.checks, []
    for name in ("negative_data_rejection", "positive_data_acceptance"):
        statuses = [*getattr(checks, name).expected_statuses, TOO_LONG]
        lines += [f"[checks.{name}]", f"expected-statuses = {json.dumps(statuses)}"]
    return "\n".join(lines)


def _configuration(site: Site | None) -> str:
    # tests/security/test_schema_fuzz.py sends the methods that an address does not have.
    lines = [expected_refusals(), "[phases.coverage]", "unexpected-methods = []"]
    if site:
        project = site.run.project
        things = {"run_id": site.run.pk, "tree": 1, "node": 1, "project_id": project.pk}
        things |= {"export_id": site.export, "experiment_id": site.run.experiment_id}
        version = site.version
        things |= {"dataset_id": version.dataset_id, "dataset_version_id": version.pk, "number": 1}
        things |= {"report_id": version.reports.get().pk}
        things |= {"report_page_id": site.report_page}
        things |= {"workspace_import_id": site.workspace_import}
        things |= {"workspace_id": project.workspace_id, "slug": project.workspace.slug}
        things |= {"comment_id": site.comment, "import_id": site.model_import, **site.registry}
        things |= {"upload_id": site.upload, "recipe": "demo"}
        lines += ["[parameters]", *(f'"path.{name}" = "{value}"' for name, value in things.items())]
        lines += ["[[operations]]", 'include-path-regex = "/searches/"']
        lines += [f'parameters = {{ "path.run_id" = "{site.search}" }}']
    return "\n".join((*lines, ""))
