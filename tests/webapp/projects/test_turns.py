"""Tests of the queues of uploads: turns between workspaces and people, places that are kept."""

from __future__ import annotations

import io
import threading
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta

import psycopg
import pytest
from django.db import connection, connections
from django.utils import timezone

from tests.helpers.builders import a_model_folder
from tests.helpers.datasets import a_finished_upload, lines_of, some_problems
from webapp.artifacts.models import Upload
from webapp.artifacts.services import append, begin, finish
from webapp.datasets.models import DatasetVersion
from webapp.datasets.parsing import parse
from webapp.errors import Queued
from webapp.projects.models import QueuePlace, Workspace
from webapp.projects.services import create_project, create_workspace
from webapp.projects.turns import KEPT, PRESENT, forget_turns, in_turn
from webapp.registry.model_files import checking

JSON = {"content_type": "application/json"}


@contextmanager
def all_slots_but(free, queue=parse.QUEUE):
    """Other processes hold the slots of the queue, each a transaction; yields these."""
    with ExitStack() as stack:
        others = []
        for slot in range(queue.slots - free):
            other = psycopg.connect(**connection.get_connection_params())
            stack.enter_context(closing(other))
            other.execute("SELECT pg_advisory_xact_lock(%s, %s)", [queue.lock, slot])
            others.append(other)
        yield others


@contextmanager
def at_work(workspace, user, work, queue=parse.QUEUE):
    """Another request is served for as long as the block runs."""
    begun, over = threading.Event(), threading.Event()

    def serve():
        try:
            with in_turn(queue, workspace, user, work):
                begun.set()
                over.wait()
        finally:
            begun.set()
            connections.close_all()

    thread = threading.Thread(target=serve)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        over.set()
        thread.join()


def asked(workspace, user, work):
    """The place of the work, or 0 if it was served."""
    try:
        with in_turn(parse.QUEUE, workspace, user, [work]):
            return 0
    except Queued as queued:
        return queued.place


def served_in_turn(works):
    """The works in the order in which one slot serves them while all are asked for in turns."""
    with all_slots_but(0):
        assert all(asked(*work) for work in works)
    order, left = [], list(works)
    with all_slots_but(1):
        while left:
            done = next(work for work in left if not asked(*work))
            left.remove(done)
            order.append(done)
    return order


def elsewhere(cast):
    return Workspace.objects.get(slug="elsewhere")


def requested(client, cast, user, project, key=None):
    """A function that sends one request for a version of one upload, again and again."""
    content = lines_of(some_problems())
    upload = begin(project, user, Upload.Kind.DATASET, "problems.jsonl", len(content))
    finish(append(upload, 0, io.BytesIO(content)))
    body = {"project": project.pk, "name": f"of {user} {upload.pk}", "uploads": [str(upload.pk)]}
    headers = {"Idempotency-Key": key} if key else {}

    def send():
        client.force_login(user)
        return client.post("/api/v1/datasets", body, headers=headers, **JSON)

    return send


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("key", [None, "once"])
def test_the_second_upload_of_a_workspace_waits_with_its_place_while_another_workspace_is_served(
    client, cast, var_directory, key
):
    ashes = create_project(elsewhere(cast), "Ashes", "ashes", created_by=cast.charlie)
    second = requested(client, cast, cast.bob, cast.project, key)
    third = requested(client, cast, cast.mia, cast.project)
    other = requested(client, cast, cast.charlie, ashes)
    with at_work(cast.project.workspace, cast.alice, ["first"]):
        for _ in range(2):
            answer = second()
            assert answer.status_code == 202 and answer.headers["Retry-After"] == "2"
            body = answer.json()
            assert (body["state"], body["place"], body["waiting"]) == ("queued", 1, 1)
            assert "place 1 of 1 in the queue" in body["detail"]
        assert third().json()["place"] == 2
        assert second().json()["place"] == 1 and second().json()["waiting"] == 2
        assert other().status_code == 201, "one slot is left to others"
    assert third().status_code == 202, "the other was there first"
    made = second()
    assert made.status_code == 201 and third().status_code == 201
    if key:
        assert second().json() == made.json(), "a place is not what is repeated"
    assert DatasetVersion.objects.count() == 3 and not Upload.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_person_holds_one_slot_in_whatever_workspaces(cast):
    other = create_workspace("Third", "third", cast.bob)
    with at_work(cast.project.workspace, cast.bob, ["first"]):
        assert asked(other, cast.bob, "second") == 1
        assert asked(elsewhere(cast), cast.charlie, "third") == 0


@pytest.mark.django_db(transaction=True)
def test_the_same_work_is_not_done_twice_at_once_and_nobody_waits_for_it(cast):
    with at_work(cast.project.workspace, cast.bob, ["same"]):
        assert asked(cast.project.workspace, cast.bob, "same") == 1
    assert asked(cast.project.workspace, cast.bob, "same") == 0


@pytest.mark.django_db(transaction=True)
def test_the_slot_of_a_process_that_dies_is_free(cast):
    with all_slots_but(0) as (first, _):
        assert asked(cast.project.workspace, cast.bob, "a") == 1
        pid = first.info.backend_pid
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
        assert asked(cast.project.workspace, cast.bob, "a") == 0


@pytest.mark.django_db(transaction=True)
def test_ten_workspaces_of_a_person_have_no_more_turns_than_one(cast):
    many = [create_workspace(f"W{index}", f"w{index}", cast.bob) for index in range(10)]
    flood = [(one, cast.bob, f"flood {one.pk}") for one in many]
    late = [(elsewhere(cast), cast.charlie, f"late {index}") for index in range(3)]
    order = [user for _, user, _ in served_in_turn([*flood, *late])]
    assert order == [cast.bob, cast.charlie] * 3 + [cast.bob] * 7


@pytest.mark.django_db(transaction=True)
def test_many_people_of_a_workspace_have_no_more_turns_than_one_and_take_turns_themselves(cast):
    trees = cast.project.workspace
    flood = [(trees, cast.bob, f"bob {index}") for index in range(4)]
    people = [(trees, user, f"of {user}") for user in (cast.alice, cast.mia, cast.vera)]
    late = [(elsewhere(cast), cast.charlie, f"late {index}") for index in range(3)]
    order = [user for _, user, _ in served_in_turn([*flood, *people, *late])]
    members = [cast.bob, cast.alice, cast.mia, cast.vera, cast.bob, cast.bob, cast.bob]
    late = [cast.charlie] * 3
    assert order[:6] == [user for pair in zip(members, late, strict=False) for user in pair]
    assert order[6:] == members[3:]


@pytest.mark.django_db(transaction=True)
def test_a_client_that_is_gone_holds_nobody_back_and_finds_its_place_for_a_while(cast):
    trees, there = cast.project.workspace, elsewhere(cast)
    with all_slots_but(0):
        assert asked(trees, cast.bob, "gone") == 1
        assert asked(there, cast.charlie, "present") == 2
    with all_slots_but(1):
        assert asked(there, cast.charlie, "present") == 2, "the first is expected to come"
        places = QueuePlace.objects.filter(user=cast.bob)
        places.update(renewed_at=timezone.now() - PRESENT - timedelta(seconds=1))
        assert asked(there, cast.charlie, "present") == 0
    with all_slots_but(0):
        assert asked(there, cast.charlie, "again") == 2
        assert asked(trees, cast.bob, "gone") == 1, "a place is kept"
        places.update(renewed_at=timezone.now() - KEPT - timedelta(seconds=1))
        assert asked(there, cast.charlie, "again") == 1
        assert asked(trees, cast.bob, "gone") == 1, "had no turn yet"
    forget_turns(timedelta(days=1))
    assert QueuePlace.objects.exists()
    QueuePlace.objects.update(renewed_at=timezone.now() - timedelta(days=2))
    forget_turns(timedelta(days=1))
    assert not QueuePlace.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_model_and_a_derived_version_wait_too_and_the_page_says_where(
    client, cast, var_directory, tmp_path
):
    uploads = []
    for path in sorted(a_model_folder(tmp_path / "model").iterdir()):
        size = path.stat().st_size
        upload = begin(cast.project, cast.bob, Upload.Kind.MODEL, path.name, size)
        with path.open("rb") as content:
            uploads.append(str(finish(append(upload, 0, content)).pk))
    body = {"project": cast.project.pk, "name": "elm", "uploads": uploads}
    client.force_login(cast.bob)
    with all_slots_but(0, checking.QUEUE):
        answer = client.post("/api/v1/models", body, **JSON)
        assert (answer.status_code, answer.json()["place"]) == (202, 1)
        assert Upload.objects.count() == len(uploads) and not cast.project.models.exists()
    assert client.post("/api/v1/models", body, **JSON).status_code == 201

    upload = a_finished_upload(cast, cast.bob)
    body = {"project": cast.project.pk, "name": "trees", "uploads": [str(upload.pk)]}
    made = client.post("/api/v1/datasets", body, **JSON).json()
    version = DatasetVersion.objects.get(pk=made["id"])
    DatasetVersion.objects.update(faulty=1)
    version.problems.update(check_state="passed")
    version.problems.filter(number=1).update(check_state="failed")
    form = {"keep": "not-failed", "note": ""}
    with all_slots_but(0):
        page = client.post(f"/datasets/versions/{version.pk}/derive/", form, follow=True)
        assert "place 1 of 1 in the queue" in page.content.decode()
    client.post(f"/datasets/versions/{version.pk}/derive/", form)
    assert DatasetVersion.objects.count() == 2
