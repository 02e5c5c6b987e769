"""Tests of what a program says of a schema that it does not know, or that is behind."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command
from django.db import connection

from webapp.operations.schema import (
    NewerSchema,
    pending,
    refuse_newer,
    refuse_newer_at_start,
    unknown,
)

pytestmark = pytest.mark.django_db


def applied(app, name):
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, now())", [app, name]
        )


def removed(app, name):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE (app, name) = (%s, %s)", [app, name])


def checked(monkeypatch):
    """The exit status of `upgrade --check` on this test's database, and what it prints."""
    monkeypatch.setenv("DATABASE_URL", "postgresql:///of-the-test")  # so that it starts no server
    printed = io.StringIO()
    try:
        call_command("upgrade", "--check", stdout=printed)
    except SystemExit as end:
        return end.code, printed.getvalue()
    return 0, printed.getvalue()


def test_a_schema_of_this_program_has_nothing_to_do(monkeypatch):
    applied("another_program", "0001_initial")  # is none of ours
    refuse_newer()
    assert (unknown(), pending()) == ([], [])
    status, text = checked(monkeypatch)
    assert status == 0 and "0 pending" in text and "Nothing to do." in text


def test_a_newer_schema_is_refused_by_a_sentence(monkeypatch):
    applied("experiments", "0999_of_tomorrow")
    assert unknown() == [("experiments", "0999_of_tomorrow")]
    with pytest.raises(NewerSchema, match=r"newer schema .*experiments.0999_of_tomorrow.*Install"):
        refuse_newer()
    status, text = checked(monkeypatch)
    assert status == 2 and "newer schema" in text


def test_a_process_that_starts_ends_with_that_sentence(monkeypatch, transactional_db):
    applied("experiments", "0999_of_tomorrow")
    try:
        with pytest.raises(SystemExit, match="newer schema"):
            refuse_newer_at_start()
    finally:
        removed("experiments", "0999_of_tomorrow")


def test_what_is_pending_is_described(monkeypatch):
    removed("experiments", "0009_given")
    refuse_newer()  # an older schema is for `upgrade`
    status, text = checked(monkeypatch)
    assert status == 1 and "1 pending" in text and "backup" in text
    assert "  experiments.0009_given\n    Add field given to run" in text, text
