"""Template contexts of the dataset pages, from selectors."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict

from engine.config.problems import ProblemsConfig
from webapp.accounts.models import User
from webapp.datasets.difficulty import problem_difficulties
from webapp.datasets.forms import OverlapForm, SearchForm
from webapp.datasets.models import DatasetProblem, DatasetReport, DatasetVersion
from webapp.datasets.references import untrainable_reason
from webapp.datasets.selectors import (
    content_of,
    newest_report,
    problems_page,
    splits,
    uses,
    visible_overlaps,
)
from webapp.projects.permissions import Action, may

MOST_HARD = 10
_SPREADS = {
    "statement_chars": "Characters of a statement",
    "reference_chars": "Characters of a reference",
    "public_tests": "Public tests of a problem",
    "private_tests": "Private tests of a problem",
}
_COUNTS = {
    "kinds": "Tests by kind",
    "asks": "Entry point",  # codespell:ignore
    "languages": "Script",
    "programs": "Language of the reference",
    "difficulties": "Difficulty in the dataset",
    "tags": "Tags",
}


def version_page(version: DatasetVersion, user: User, query: QueryDict) -> dict[str, Any]:
    """Returns the context of dataset_version.html, see `views.dataset_version`."""
    form = SearchForm(query)
    form.is_valid()
    words, check = form.value("q", ""), form.value("check", "")
    defaults = ProblemsConfig()
    sizes = {
        name: form.value(name, getattr(defaults, name)) for name in ("train", "validation", "test")
    }
    seed = form.value("seed", 0)
    split = splits(version, seed, tuple(sizes.values()))
    hard = problem_difficulties(version, user)
    return {
        "version": version,
        "stored": version.artifact_id is not None,
        "untrainable": untrainable_reason(version) if version.artifact_id else "",
        "page": problems_page(version, words, check, form.value("after", 0)),
        "words": words,
        "check": check,
        "checks": DatasetProblem.Check.choices,
        "after": form.value("after", 0),
        "counts": _counts(version),
        "spreads": _spreads(version),
        "report": newest_report(version, DatasetReport.Kind.VALIDATION),
        "overlaps": visible_overlaps(user, version)[:5],
        "overlap_form": OverlapForm(others(version, user)),
        "seed": seed,
        "sizes": sizes,
        "split": {name: getattr(split, name) for name in sizes},
        "launch_lines": _launch_lines(version),
        "hard": hard.problems[:MOST_HARD],
        "hard_runs": hard.runs,
        "uses": uses(version, user)[:50],
        "can_change": may(user, Action.ADD_DATASETS, version.dataset.project),
    }


def _launch_lines(version: DatasetVersion) -> str:
    """Returns the overrides of a recipe with which a run trains on the version, as TOML."""
    defaults, count = ProblemsConfig(), version.statistics.get("problems", 0)
    lines = [f'problems.dataset = "{version.reference}"']
    if count <= defaults.validation + defaults.test:  # too small for the default splits
        lines += [f"problems.validation = {count // 10}", f"problems.test = {count // 5}"]
    return "\n".join(lines)


def others(version: DatasetVersion, user: User) -> Any:
    """Returns the stored versions that a version can be compared with."""
    seen = DatasetVersion.objects.visible_to(user).filter(artifact__isnull=False)
    return (
        seen.exclude(pk=version.pk).select_related("dataset").order_by("dataset__name", "-number")
    )


def problem_page(row: DatasetProblem) -> dict[str, Any]:
    """Returns the context of dataset_problem.html, see `views.dataset_problem`."""
    content = content_of(row)
    tests = [("public", test) for test in content["public_tests"]]
    tests += [("private", test) for test in content["private_tests"]]
    numbers = row.version.problems
    return {
        "problem": row,
        "version": row.version,
        "statement": content["statement"],
        "reference": content.get("reference", ""),
        "prelude": content.get("prelude", ""),
        "checker": content.get("comparison", {}).get("checker", ""),
        "tests": [_test(kind, test) for kind, test in tests],
        "previous": numbers.filter(number=row.number - 1).first(),
        "following": numbers.filter(number=row.number + 1).first(),
    }


def _test(kind: str, test: dict[str, Any]) -> dict[str, Any]:
    """Returns {kind, given, expected} as text, for any kind of test."""
    if "code" in test:
        return {"kind": kind, "given": test["code"], "expected": ""}
    if "stdin" in test:
        return {"kind": kind, "given": test["stdin"], "expected": test["expected"]}
    given = test.get("arguments_literal", test.get("arguments"))
    return {
        "kind": kind,
        "given": given if isinstance(given, str) else ", ".join(map(repr, given)),
        "expected": test.get("expected_literal", repr(test.get("expected"))),
    }


def _counts(version: DatasetVersion) -> list[tuple[str, list[tuple[str, int]]]]:
    pairs = [(title, version.statistics.get(name)) for name, title in _COUNTS.items()]
    return [
        (title, sorted(by_name.items(), key=lambda i: -i[1])) for title, by_name in pairs if by_name
    ]


def _spreads(version: DatasetVersion) -> list[tuple[str, dict[str, float]]]:
    pairs = [(title, version.statistics.get(name)) for name, title in _SPREADS.items()]
    return [(title, figures) for title, figures in pairs if figures]
