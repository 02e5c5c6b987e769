"""Tests that one thread handles a request, from its first middleware to its response."""

import asyncio
import threading

import httpx
import pytest
from django.core.handlers.asgi import ASGIHandler

from tests.helpers.waiting import patience
from webapp.http.single_thread_handler import OneThreadHandler

pytestmark = pytest.mark.django_db(transaction=True)


class Held:
    """An event loop that blocks until the view has answered, for at most `seconds`."""

    def __init__(self, seconds: float = 0.0):
        self.seconds = seconds
        self.began, self.answered = threading.Event(), threading.Event()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.was_answered = False

    def hold(self) -> None:
        self.began.set()
        self.was_answered = self.answered.wait(self.seconds)


held = Held()


def outermost(get_response):
    def view(request):
        held.loop.call_soon_threadsafe(held.hold)
        assert held.began.wait(20 * patience())
        return get_response(request)

    return view


def innermost(get_response):
    def view(request):
        response = get_response(request)
        held.answered.set()
        return response

    return view


@pytest.mark.parametrize(
    "handler, seconds, needs_no_loop", [(OneThreadHandler, 20.0, True), (ASGIHandler, 0.5, False)]
)
def test_no_middleware_and_no_view_needs_the_event_loop(settings, handler, seconds, needs_no_loop):
    """Django's own handler needs it, which shows that the test detects it."""
    added = [f"{__name__}.{one.__name__}" for one in (outermost, innermost)]
    settings.MIDDLEWARE = [added[0], *settings.MIDDLEWARE, added[1]]
    held.__init__(seconds)

    async def answer() -> httpx.Response:
        held.loop = asyncio.get_running_loop()
        transport = httpx.ASGITransport(app=handler())
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            return await client.get("/healthz")

    assert asyncio.run(answer()).status_code == 200
    assert held.was_answered is needs_no_loop


class Blocked:
    """Requests that stay in their thread until they are released."""

    def __init__(self):
        self.came, self.go = threading.Semaphore(0), threading.Event()


blocked = Blocked()


def blocking(get_response):
    def view(request):
        blocked.came.release()
        assert blocked.go.wait(20 * patience())
        return get_response(request)

    return view


def test_concurrent_request_threads_are_bounded_and_a_finished_one_frees_a_slot(settings):
    settings.MIDDLEWARE = [f"{__name__}.blocking", *settings.MIDDLEWARE]
    blocked.__init__()

    async def answer() -> None:
        transport = httpx.ASGITransport(app=OneThreadHandler(most=2))
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            first = [asyncio.create_task(client.get("/healthz")) for _ in range(2)]
            for _ in first:
                assert await asyncio.to_thread(blocked.came.acquire, timeout=20 * patience())
            for path, kind in (("/healthz", "text/plain"), ("/api/v1/runs", "application/problem")):
                response = await client.get(path)
                assert response.status_code == 503 and response.headers["Retry-After"] == "1"
                assert response.headers["Content-Type"].startswith(kind)
            blocked.go.set()
            assert [(await one).status_code for one in first] == [200, 200]
            assert (await client.get("/healthz")).status_code == 200

    asyncio.run(answer())
