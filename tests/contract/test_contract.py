"""schemathesis asks the real server everything that the OpenAPI document lets one say, and what it
does not: no failure of ours, no status and no body that the document does not name.

`GROVE_CONTRACT_SEED` and `GROVE_CONTRACT_EXAMPLES` choose another seed and more cases.
"""

import os

import pytest

from tests.builders import a_cast
from tests.contract.site import ask_everything, furnish
from tests.webapp.stream_server import a_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]

SEED = int(os.environ.get("GROVE_CONTRACT_SEED", "1"))
EXAMPLES = int(os.environ.get("GROVE_CONTRACT_EXAMPLES", "2"))


@pytest.fixture(scope="module")
def served(django_db_setup):
    with a_server() as served:
        yield served


@pytest.fixture
def site(served, var_directory, settings):
    # The tool shows wrong tokens by the hundred, and means to be told so each time.
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "guesses": (100_000, 60.0)}
    yield furnish(f"http://127.0.0.1:{served.port}", a_cast())
    served.wait_until_idle()


@pytest.mark.parametrize(
    "who, known, phases",
    [
        ("an owner", True, "examples,coverage"),
        ("an owner", False, "fuzzing,stateful"),
        ("a viewer", True, "fuzzing"),
        ("nobody", True, "fuzzing"),
    ],
)
def test_every_answer_is_one_that_the_document_names(site, tmp_path, who, known, phases):
    load = {"known": known, "phases": phases, "examples": EXAMPLES, "seed": SEED}
    asked = ask_everything(site, who, tmp_path, **load)
    assert asked.returncode == 0, asked.stdout + asked.stderr
