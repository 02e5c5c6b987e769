"""Tests of the documented commands: each parses, and is run by a test or states why not."""

import contextlib
import re
import shlex
import subprocess
import sys
from importlib import import_module

import pytest

from tests.docs.pages import ROOT, pages
from tests.helpers.waiting import patience

_BLOCK = re.compile(r"(?:^<!-- ([^\n]*) -->\n)?^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(
    r"(?:^|\$\()\s*(?:\.venv/bin/)?(?:python3? )?"
    r"(-m engine|-m benchmarks|-m docs.generate|manage\.py|grove|make)\b ?([^\n)]*)",
    re.MULTILINE,
)


def blocks():
    """(page, mark or None, commands) of every block of commands."""
    shown = [page for page in pages() if page.parent.name != "reference"]
    for page in shown:
        for mark, text in _BLOCK.findall(page.read_text("utf-8")):
            yield page.relative_to(ROOT).as_posix(), mark, text


def commands():
    results = []
    for page, _, text in blocks():
        for program, words in _COMMAND.findall(text.replace("\\\n", " ")):
            results.append(pytest.param(program, words, id=f"{page}: {program} {words[:40]}"))
    return results


def test_every_block_says_how_it_is_tested():
    problems = [(page, text) for page, mark, text in blocks() if not is_marked(mark)]
    assert not problems


def is_marked(mark):
    how, _, what = mark.partition(": ")
    if how == "not run":
        return len(what) > 20
    file, _, name = what.partition("::")
    there = ROOT / file
    return how == "tested by" and there.is_file() and f"def {name}" in there.read_text("utf-8")


def test_citations_of_a_missing_test_are_reported():
    assert is_marked(
        "tested by: tests/docs/test_commands.py::test_citations_of_a_missing_test_are_reported"
    )
    assert not is_marked("tested by: tests/docs/test_commands.py::test_nothing_of_the_kind")
    assert not is_marked("tested by: tests/docs/test_none.py")
    assert not is_marked("not run: no")
    assert not is_marked("")


@pytest.mark.parametrize(("program", "words"), commands())
def test_every_command_is_understood(program, words):
    understand(program, shlex.split(re.sub(r"\$\w+", "1", words), comments=True))


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("-m engine", "trian DIR"),
        ("grove", "stop"),
        ("grove", "models ad x"),
        ("manage.py", "serve"),
        ("make", "install"),
    ],
)
def test_a_missing_command_is_reported(program, words):
    with pytest.raises((AssertionError, SystemExit)):
        understand(program, words.split())


def understand(program, words):
    """Parses the words with the command's own parser, without running the command."""
    if program == "make":
        targets = (ROOT / "Makefile").read_text("utf-8")
        assert f"\n{words[0]}:" in targets
    elif program == "manage.py":
        from django.core.management import get_commands

        assert words[0] in get_commands()
        command = import_module(
            f"{get_commands()[words[0]]}.management.commands.{words[0]}"
        ).Command()
        command.create_parser("manage.py", words[0]).parse_args(words[1:])
    elif program == "-m engine":
        from engine.__main__ import build_parser

        build_parser().parse_args(words)
    elif program == "grove":
        from webapp.client import cli, local

        if (target := local.local_verb(words)) and target[0] == local.ENGINE:
            understand("-m engine", target[1])
        elif target and words[0] != "manage":
            understand("manage.py", target[1])
        else:
            cli.build_parser().parse_args(words)
    elif program == "-m benchmarks":
        from benchmarks import COMMANDS

        assert words[0] in {"--help", *COMMANDS}
    else:
        import docs.generate.__main__ as generate

        with contextlib.suppress(SystemExit):
            generate.main(["--help"])


FEW = (
    "problems.train=8 problems.validation=0 problems.test=2 training.trees_per_step=2 "
    "search.nodes_per_tree=2 evaluation.tree_nodes=2"
)
"""Settings that shrink the tour's run; its commands stay as they are written."""


@pytest.mark.large
@pytest.mark.slow
def test_the_engine_s_tour_runs(tmp_path):
    text = (ROOT / "docs" / "guides" / "engine.md").read_text("utf-8")
    tour = next(block for _, block in _BLOCK.findall(text) if "-m engine train" in block)
    tour = tour.replace(".venv/bin/python", shlex.quote(sys.executable))
    tour = re.sub(r"\b(DIR|FORK)\b", rf"{tmp_path}/\1", tour)
    tour = tour.replace("demo training.steps=1", f"demo training.steps=1 {FEW}")
    done = subprocess.run(
        ["bash", "-euc", tour], cwd=ROOT, capture_output=True, text=True, timeout=500 * patience()
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "DIR" / "checkpoints" / "step-000001").is_dir()
    assert (tmp_path / "FORK" / "config.json").is_file()
