"""schemathesis asks the real server everything that the OpenAPI document lets one say, and what it
does not: no failure of ours, no status and no body that the document does not name.

`GROVE_CONTRACT_SEED`, `GROVE_CONTRACT_EXAMPLES` and `GROVE_CONTRACT_WALKS` choose another seed and
more cases.
"""

import os

import pytest

from tests.builders import a_cast
from tests.contract.site import ask_everything, furnish
from tests.contract.walk import walk
from tests.webapp.stream_server import a_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]

SEED = int(os.environ.get("GROVE_CONTRACT_SEED", "1"))
WALKS = int(os.environ.get("GROVE_CONTRACT_WALKS", "20"))
EXAMPLES = int(os.environ.get("GROVE_CONTRACT_EXAMPLES", "3"))


@pytest.fixture(scope="module")
def served(django_db_setup):
    with a_server() as served:
        yield served


@pytest.fixture
def site(served, var_directory, settings):
    # The tool shows wrong tokens by the hundred, and means to be told so each time.
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "guesses": (100_000, 60.0)}
    settings.PROJECT_RUNS = settings.USER_RUNS = 100_000
    yield furnish(f"http://127.0.0.1:{served.port}", a_cast())
    served.wait_until_idle()


@pytest.mark.parametrize(
    "who, known, phases",
    [
        ("an owner", True, "examples,coverage"),
        ("an owner", False, "fuzzing"),
        ("a viewer", True, "fuzzing"),
        ("a stranger", True, "fuzzing"),
        ("nobody", True, "fuzzing"),
    ],
)
def test_every_answer_is_one_that_the_document_names(site, tmp_path, who, known, phases):
    # To a request without a token, and to a stranger's, the answer is the same whatever it says.
    examples = EXAMPLES if who in ("an owner", "a viewer") else 1
    load = {"known": known, "phases": phases, "examples": examples, "seed": SEED}
    wrong = ask_everything(site, who, tmp_path, **load)
    assert not wrong, wrong


def reported(walked):
    return "\n\n".join(f"{what}\n{told}" for what, told in walked.faults.items())


def test_what_was_made_is_walked_to_all_that_may_be_done_with_it(site):
    walked = walk(site, "an owner", scenarios=WALKS, seeds=(SEED, SEED + 1))
    assert not walked.faults, reported(walked)
    assert len(walked.begun) >= 12, site.beginnings().keys() - walked.begun.keys()
    assert len(walked.succeeded) >= 35 and sum(walked.succeeded.values()) >= 50
    changes = {one for one in walked.targets if not one.startswith(("GET", "HEAD"))}
    assert len(changes) >= 12, changes


@pytest.mark.parametrize(
    "who, made", [("a viewer", {"POST /api/v1/exports"}), ("a stranger", set())]
)
def test_who_may_make_nothing_is_refused_at_every_beginning(site, who, made):
    """They read lists, and a viewer takes tables away; all else is refused as the document says."""
    walked = walk(site, who, scenarios=5, seeds=(SEED,))
    assert not walked.faults, reported(walked)
    changes = {one for one in walked.begun if not one.startswith("GET")}
    assert changes == made
    assert walked.begun.keys() - changes, "the lists are theirs to read"
