"""Tests of the process to which a command line of `grove` is dispatched."""

from __future__ import annotations

import re

import pytest

from engine.__main__ import main as engine_main
from webapp.client.local import ENGINE, ENGINE_VERBS, SERVER, local_verb


def test_every_verb_of_the_engine_is_one_of_grove(capsys):
    with pytest.raises(SystemExit):
        engine_main(["no-such-verb"])
    verbs = set(re.findall(r"[\w-]+", capsys.readouterr().err.rpartition("choose from")[2]))
    assert len(verbs) > 10
    assert verbs == {*ENGINE_VERBS, "search", "doctor"}


@pytest.mark.parametrize(
    ("line", "module", "arguments"),
    [
        ("up", SERVER, "up"),
        ("demo --json out.json", SERVER, "demo --json out.json"),
        ("backup x.zip --secrets", SERVER, "backup x.zip --secrets"),
        ("manage migrate --plan", SERVER, "migrate --plan"),
        ("train run --json", ENGINE, "train run --json"),
        ("engine search --problem p", ENGINE, "search --problem p"),
        ("search --agents a --problem p", ENGINE, "search --agents a --problem p"),
        ("search --run-dir=run", ENGINE, "search --run-dir=run"),
        ("doctor demo training.steps=3", ENGINE, "doctor demo training.steps=3"),
    ],
)  # fmt: skip
def test_a_local_verb_is_handed_on_word_by_word(line, module, arguments):
    assert local_verb(line.split()) == (module, arguments.split())


@pytest.mark.parametrize(
    "line",
    ["", "--help", "--version", "doctor", "doctor --json", "runs --name night", "start 1 demo",
     "search 1 problem.json --team starter:oak --set search.rho=0.9", "export runs engine"],
)  # fmt: skip
def test_commands_of_the_client_are_not_local_verbs(line):
    assert local_verb(line.split()) is None
