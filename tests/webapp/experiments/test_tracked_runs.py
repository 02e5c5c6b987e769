"""Tests of runs that other programs log: who writes, and what is refused, whatever is sent."""

import uuid
from datetime import timedelta

import pytest
from django.db.models import F

from tests.helpers.builders import a_token
from tests.webapp.experiments.test_external_engines import Engine, line
from webapp.accounts.models import Scope
from webapp.experiments.models import Run
from webapp.telemetry.stream.view import View


class Program:
    """A process that logs a run of its own by REST."""

    def __init__(self, client, cast, key="oak-1", resume="never", **fields):
        self.client, self.session = client, str(uuid.uuid4())
        secret = a_token(cast.bob, cast.project, Scope.RUNS_WRITE, Scope.TELEMETRY_WRITE)
        self.headers = {"authorization": f"Bearer {secret}"}
        self.identity = {"project": cast.project.pk, "id": key, "session": self.session,
                         "resume": resume, **fields}  # fmt: skip
        self.answer = self.attach()

    def attach(self, **more):
        return self.post("/tracked", {**self.identity, **more})

    def post(self, path, body):
        options = {"content_type": "application/json", "headers": self.headers}
        return self.client.post(f"/api/v1/runs{path}", body, **options)

    def send(self, *events, **body):
        run = self.answer.json()["run"]["id"]
        return self.post(f"/{run}/events", {"session": self.session, "events": events, **body})


def logged(seq, step=1, **payload):
    return line(seq, "metric.logged", step=step, **payload)


@pytest.fixture
def program(client, cast):
    return Program(client, cast)


def refusal(response):
    assert response.status_code == 422, response.content
    (one,) = response.json()["problems"]
    return one["path"], one["reason"]


def test_a_tracked_run_is_listed_and_has_the_settings_of_its_program(program, client, cast):
    described = line(1, "run.described", config={"lr": 0.1}, tags=["a"], notes="So *far*.")
    program.send(line(2, "run.state", state="running")), program.send(described)
    program.send(line(2, "run.state", state="running"), logged(3, 5, numbers={"train/loss": 2}))
    client.force_login(cast.alice)
    (run,) = client.get("/api/v1/runs").json()["runs"]
    assert (run["name"], run["tracked"], run["state"], run["step"]) == ("oak-1", True, "running", 5)
    assert run["tags"] == ["a"]
    detail = client.get(f"/api/v1/runs/{run['id']}").json()
    assert detail["config"] == {"lr": 0.1} and detail["notes"] == "So *far*."
    assert "logged by another program" in client.get("/").content.decode()
    page = client.get(f"/runs/{run['id']}/").content.decode()
    assert 'data-part="program"' in page and "Clone with changes" not in page
    for path in ("launch", "compare", "charts", "exports", "log"):
        assert client.get(f"/{path}/?source={run['id']}&run={run['id']}").status_code != 500


def test_what_needs_settings_of_grove_is_refused_for_a_tracked_run(program, client, cast):
    run = program.answer.json()["run"]["id"]
    client.force_login(cast.bob)
    assert "another program logs this run" in str(client.post(f"/api/v1/runs/{run}/clone").json())
    program.send(line(1, "run.state", state="failed", reason="out of memory"))
    response = client.post(f"/api/v1/runs/{run}/resume")
    assert response.status_code == 409 and "grove.init" in response.json()["detail"]


def test_a_setting_of_any_shape_breaks_no_page(program, client, cast):
    hostile = {"agents": 3, "recipe": {"a": 1}, "training": {"minutes": "x"}, "search": None,
               "credit": [], "": {"": {}}, "<b>": "</script>"}  # fmt: skip
    program.send(line(1, "run.described", config=hostile, summary=hostile))
    other = Program(client, cast, key="other")
    run, second = program.answer.json()["run"]["id"], other.answer.json()["run"]["id"]
    client.force_login(cast.alice)
    both = f"?run={run}&run={second}"
    for path in ("/", "/?col=recipe", f"/runs/{run}/", f"/charts/{both}", f"/compare/{both}",
                 f"/api/v1/comparison{both}"):  # fmt: skip
        assert client.get(path).status_code == 200, path
    assert b"\\u003C/script" in client.get(f"/runs/{run}/").content


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ({"config": {"big": "x" * 1_100_000}}, "1048576 bytes"),
        ({"tags": ["two words"]}, "without spaces"),
        ({"tags": [f"t{n}" for n in range(21)]}, "at most 20"),
        ({"notes": "n" * 50_001}, "at most 50000"),
    ],
)
def test_a_description_beyond_a_bound_is_refused(program, described, reason):
    assert reason in refusal(program.send(line(1, "run.described", **described)))[1]
    nest = leaf = {}
    for _ in range(30):
        leaf["x"] = leaf = {}
    assert "20 levels" in refusal(program.send(line(1, "run.described", summary=nest)))[1]


def test_settings_that_grow_beyond_a_bound_are_refused_and_those_before_are_kept(program):
    for seq in range(1, 6):
        response = program.send(line(seq, "run.described", config={f"part{seq}": "x" * 250_000}))
        if response.status_code != 200:
            break
    assert seq == 5 and "in all" in refusal(response)[1]
    assert len(Run.objects.get().tracking.config) == 4


def test_only_the_process_that_is_attached_writes(program, client, cast):
    assert program.send(logged(1, texts={"a": "x"})).status_code == 200
    for session in (None, str(uuid.uuid4())):
        refused = program.send(logged(2, texts={"a": "y"}), session=session)
        assert refused.status_code == 409 and "Another process" in refused.json()["detail"]
    busy = Program(client, cast, resume="allow").answer
    assert busy.status_code == 409 and "logs to oak-1" in busy.json()["problems"][0]["reason"]
    assert "resume='allow'" in str(Program(client, cast).answer.json())
    engine = Engine(client, cast)
    response = engine.post(f"/{engine.run['id']}/events", {"events": [], "session": busy_session()})
    assert response.status_code == 409 and "leave session out" in response.json()["detail"]
    described = engine.send(line(1, "run.described", config={"seed": 3}))
    assert refusal(described)[0] == "events.0.kind"
    assert engine.send(logged(1, numbers={"own": 1})).status_code == 200


def busy_session():
    return str(uuid.uuid4())


def test_a_process_that_was_replaced_continues_after_its_own_last_line(program, client, cast):
    program.send(logged(1, texts={"a": "1"}), logged(2, texts={"a": "2"}))
    Run.objects.update(lease_expires=F("lease_expires") - timedelta(seconds=70))
    second = Program(client, cast, resume="must", lines=1)
    assert second.answer.json()["base"] == 2 and second.answer.json()["lines"] == 0
    second.send(logged(3, texts={"a": "3"}), line(4, "run.state", state="finished"))
    again = program.attach(lines=2).json()
    assert (again["base"], again["lines"], again["run"]["state"]) == (2, 2, "finished")
    again = program.attach(lines=3).json()
    assert again["run"]["state"] == "starting"
    assert program.send(logged(5, texts={"a": "5"})).status_code == 200
    assert Run.objects.get().head_seq == 5


def test_a_guest_never_sees_what_the_program_says_of_itself(program, client, cast):
    program.send(line(1, "run.described", config={"path": "/secret"}), logged(2, texts={"a": "x"}))
    client.force_login(cast.alice)
    run = program.answer.json()["run"]["id"]
    made = client.post(f"/api/v1/runs/{run}/shares", {"days": 1}, content_type="application/json")
    link = made.json()["link"]
    client.logout()
    secret = link.rstrip("/").rpartition("/")[2]
    for path in (link, f"/api/v1/shared/{secret}/state"):
        response = client.get(path)
        assert response.status_code == 200 and b"/secret" not in response.content, path
    row = (1, 0, "run.described", None, None, "{}")
    assert not View("/shared").encode(row) and View.of_all(uuid.UUID(run)).encode(row)
