"""Tests that a failing queue never fails a request."""

import os
import socket
import subprocess
import sys
import threading

import pytest
from django.db import connection

from tests.helpers.builders import a_cast, a_run
from tests.helpers.waiting import patience
from webapp.celery import RUN_TASK, app
from webapp.experiments.scheduling.dispatch import dispatch, dispatch_on_commit
from webapp.experiments.selectors import sweepable_runs

DISPATCH = """
import sys, django
django.setup()
from webapp.experiments.scheduling.dispatch import dispatch
print(dispatch(sys.argv[1]))
"""


def test_a_message_names_the_run(cast):
    run = a_run(cast)
    with app.connection_for_read() as broker:
        queue = broker.SimpleQueue(app.conf.task_default_queue)
        queue.clear()
        assert dispatch(run.pk) is True
        message = queue.get(timeout=30 * patience())
        message.ack()
    assert message.headers["task"] == RUN_TASK and message.payload[0] == [str(run.pk)]
    run.refresh_from_db()
    assert run.dispatched_at is not None


def test_a_run_is_sent_when_its_transaction_is_committed(cast, django_capture_on_commit_callbacks):
    run = a_run(cast)
    with django_capture_on_commit_callbacks(execute=True) as callbacks:
        dispatch_on_commit(run.pk)
        run.refresh_from_db()
        assert run.dispatched_at is None
    run.refresh_from_db()
    assert len(callbacks) == 1 and run.dispatched_at is not None


def dispatched(run, port):
    """What `dispatch` says in a process whose broker should be at this port."""
    database = connection.settings_dict
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "webapp.config.settings",
        "BROKER_URL": f"redis://127.0.0.1:{port}/0",
        "DATABASE_URL": f"postgresql://{database['USER']}@/{database['NAME']}"
        f"?host={database['HOST']}",
    }
    words = [sys.executable, "-c", DISPATCH, str(run.pk)]
    completed = subprocess.run(words, env=environment, capture_output=True, text=True)
    return completed.stdout.strip() or completed.stderr


@pytest.mark.large
@pytest.mark.django_db(transaction=True)
def test_without_a_broker_the_run_stays_for_the_sweep():
    run = a_run(a_cast())
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # held, but nothing listens
        assert dispatched(run, nobody.getsockname()[1]) == "False"
    assert run.pk in sweepable_runs()


@pytest.mark.large
@pytest.mark.django_db(transaction=True)
def test_a_broker_that_hangs_up_is_not_called_over_and_over():
    run = a_run(a_cast())
    calls = []

    def hang_up():
        while True:
            caller, _ = listener.accept()
            caller.close()
            calls.append(caller)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=hang_up, daemon=True).start()
        assert dispatched(run, listener.getsockname()[1]) == "False"
    assert 1 <= len(calls) <= 3, "the connection, and what its client library tries itself"
    assert run.pk in sweepable_runs()
