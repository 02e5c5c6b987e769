"""Runs of a served site over REST, as its first account does them in a browser."""

from __future__ import annotations

import json
import re

import httpx

from tests.helpers.waiting import patience

LOGIN, PASSWORD = "owner", "a long pass phrase"
"""Of the first account, made by `createsuperuser` with `DJANGO_SUPERUSER_PASSWORD`."""
FIRST_ACCOUNT = (
    *("createsuperuser", "--noinput", "--username", LOGIN),
    *("--email", "owner@example.org"),
)


def signed_in(address: str) -> httpx.Client:
    """Returns a browser with which the first account has signed in by its password."""
    browser = httpx.Client(base_url=address, timeout=60 * patience(), follow_redirects=True)
    page = browser.get("/sign-in/")
    form = {"login": LOGIN, "password": PASSWORD}
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[1]
    sent = browser.post("/sign-in/", data={**form, "csrfmiddlewaretoken": token})
    assert sent.status_code == 200 and browser.cookies.get("sessionid"), sent.text[:2000]
    browser.headers["X-CSRFToken"] = browser.cookies["csrftoken"]
    return browser


def a_new_project(browser: httpx.Client) -> int:
    """Creates a workspace with a project; returns the project's id."""
    workspace = browser.post("/api/v1/workspaces", json={"name": "Deployed"})
    assert workspace.status_code == 201, workspace.text
    below = f"/api/v1/workspaces/{workspace.json()['slug']}/projects"
    project = browser.post(below, json={"name": "Here"})
    assert project.status_code == 201, project.text
    return project.json()["id"]


def started(browser: httpx.Client, project: int, **new: object) -> str:
    """Queues a run, by default of the recipe `demo`; returns its id."""
    body = {"project": project, "name": "Started by REST", "recipe": "demo", **new}
    sent = browser.post("/api/v1/runs", json=body)
    assert sent.status_code == 201, sent.text
    return sent.json()["id"]


def state_of(browser: httpx.Client, run: str) -> str:
    """Returns the run's state, which must not be `failed`."""
    said = browser.get(f"/api/v1/runs/{run}").json()
    assert said["state"] != "failed", said
    return said["state"]


def events_of(browser: httpx.Client, run: str) -> list[list]:
    """Every stored event of the run as [seq, milliseconds, kind, payload]."""
    text = browser.get(f"/api/v1/runs/{run}/events").text
    return [json.loads(line) for line in text.splitlines() if line]
