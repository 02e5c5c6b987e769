"""Tests of the real server with schemathesis: every response conforms to the OpenAPI document.

The requests are those that the document allows and those that it does not: no server error, and no
status or body that the document does not declare. `GROVE_CONTRACT_SEED`, `GROVE_CONTRACT_EXAMPLES`
and `GROVE_CONTRACT_WALKS` select another seed and more cases.
"""

import os

import pytest

from tests.contract.site import furnish, request_every_operation
from tests.contract.walk import walk
from tests.helpers.builders import a_cast
from tests.webapp.telemetry.stream_server import a_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]

SEED = int(os.environ.get("GROVE_CONTRACT_SEED", "1"))
WALKS = int(os.environ.get("GROVE_CONTRACT_WALKS", "20"))
FEW_WALKS = 10
EXAMPLES = int(os.environ.get("GROVE_CONTRACT_EXAMPLES", "3"))


@pytest.fixture(scope="module")
def served(django_db_setup):
    with a_server() as served:
        yield served


@pytest.fixture
def site(served, var_directory, settings):
    # The tool sends wrong tokens by the hundred and expects the same refusal each time, so the
    # limit on guesses is raised. It waits for minutes where a limit of requests is reached.
    raised = dict.fromkeys(("guesses", "workspace imports"), (100_000, 60.0))
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, **raised}
    settings.PROJECT_RUNS = settings.USER_RUNS = 100_000
    yield furnish(f"http://127.0.0.1:{served.port}", a_cast())
    served.wait_until_idle()


@pytest.mark.parametrize(
    "who, known, phases",
    [
        pytest.param("an owner", True, "examples,coverage", marks=pytest.mark.large),
        pytest.param("an owner", False, "fuzzing", marks=pytest.mark.large),
        pytest.param("a viewer", True, "fuzzing", marks=pytest.mark.large),
        pytest.param("a stranger", True, "fuzzing", marks=pytest.mark.large),
        pytest.param("nobody", True, "fuzzing", marks=pytest.mark.large),
    ],
)
def test_every_answer_is_one_that_the_document_names(site, tmp_path, who, known, phases):
    # A request without a token, or by a stranger, gets the same response whatever it contains.
    examples = EXAMPLES if who in ("an owner", "a viewer") else 1
    load = {"known": known, "phases": phases, "examples": examples, "seed": SEED}
    wrong = request_every_operation(site, who, tmp_path, **load)
    assert not wrong, wrong


def reported(walked):
    return "\n\n".join(f"{what}\n{error}" for what, error in walked.faults.items())


@pytest.mark.parametrize(
    "walks, begun, links, changed",
    [(FEW_WALKS, 8, 15, 4), pytest.param(WALKS, 12, 35, 12, marks=pytest.mark.large)],
)
def test_the_walk_follows_links_from_created_objects(site, walks, begun, links, changed):
    """The numbers are the least that the walks must have reached: beginnings, links followed with
    success, and changing operations that a link led to."""
    walked = walk(site, "an owner", scenarios=walks, seeds=(SEED, SEED + 1))
    assert not walked.faults, reported(walked)
    assert len(walked.begun) >= begun, site.beginnings().keys() - walked.begun.keys()
    assert len(walked.succeeded) >= links and sum(walked.succeeded.values()) >= 1.4 * links
    changes = {one for one in walked.targets if not one.startswith(("GET", "HEAD"))}
    assert len(changes) >= changed, changes


@pytest.mark.parametrize(
    "who, made", [("a viewer", {"POST /api/v1/exports"}), ("a stranger", set())]
)
def test_a_user_without_rights_is_refused_by_every_create_operation(site, who, made):
    """Viewers read lists and export tables; everything else is refused as documented."""
    walked = walk(site, who, scenarios=5, seeds=(SEED,))
    assert not walked.faults, reported(walked)
    changes = {one for one in walked.begun if not one.startswith("GET")}
    assert changes == made
    assert walked.begun.keys() - changes, "the lists are theirs to read"
