"""Tests of pushes to a Hugging Face hub: the real command and server, against a local hub."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.builders import a_model_folder, a_token
from tests.helpers.datasets import lines_of, some_problems, stored_version
from tests.helpers.hub_server import TOKEN, a_hub, folder_contents
from tests.helpers.waiting import patience
from webapp.accounts.models import Scope
from webapp.registry.model_files.imports import import_folder
from webapp.registry.models import ModelVersion
from webapp.registry.versions.cards import card

ROOT = Path(__file__).resolve().parents[3]
_MANY = """
import contextlib, io, json, os, sys
from webapp.client.cli import main
before = dict(os.environ)
for variables, words in json.load(sys.stdin):
    os.environ.update(before | variables)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    print(json.dumps([status, out.getvalue(), err.getvalue()]))
"""


@pytest.fixture
def hub():
    with a_hub() as hub:
        yield hub


@pytest.fixture
def grove(site, hub, tmp_path):
    """Runs one command with a token that reads, or `many`, each of (variables, words), in one
    process; returns the finished process."""
    token = a_token(site.cast.vera, site.cast.project, Scope.RUNS_READ)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "GROVE_HUB"))}

    def run(*words, module="webapp.client", many=()):
        environment = hub.environment(tmp_path / "home", TOKEN)
        program = ["-c", _MANY] if many else ["-m", module, *map(str, words)]
        return subprocess.run(
            [sys.executable, *program], cwd=ROOT, input=json.dumps(many),
            env={**clean, **site.environment, "GROVE_TOKEN": token, **environment},
            capture_output=True, text=True, timeout=120 * patience(),
        )  # fmt: skip

    return run


def pushed(done):
    """The reference that a push printed."""
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.strip()


def expected(version, folder):
    return {**folder_contents(folder), "README.md": card(version).encode()}


def test_a_version_is_pushed_with_its_card_and_read_back(site, hub, grove, tmp_path):
    folder = a_model_folder(tmp_path / "elm", shards=2)
    version = import_folder(site.cast.project, "elm", folder)
    done = grove("push-hub", version.model_id, 1, "forest/elm")
    repository = hub.repositories["models/forest/elm"]
    commit = repository.branches["main"]
    assert pushed(done) == f"hf:forest/elm@{commit}"
    assert repository.private and repository.messages == ["first", "elm v1, from Grove"]
    files = repository.commits[commit]
    assert files.pop(".gitattributes") and files == expected(version, folder)
    uploads = [path for method, path, _ in hub.requests if method == "PUT"]
    assert len(uploads) == 2, "weights go by Git LFS, not inside of the commit"
    target = tmp_path / "back"
    done = grove("models", "pull", f"hf:forest/elm@{commit}", target, module="engine")
    assert done.returncode == 0, done.stderr
    back = folder_contents(target)
    assert commit.encode() in back.pop("lineage.json")
    assert back == folder_contents(folder)


def test_a_later_push_leaves_no_file_of_the_earlier_one(site, hub, grove, tmp_path):
    first = a_model_folder(tmp_path / "a", shards=2)
    (first / "generation_config.json").write_text("{}")
    import_folder(site.cast.project, "elm", first)
    second = a_model_folder(tmp_path / "b", seed=3)
    version = import_folder(site.cast.project, "elm", second)
    pushed(grove("push-hub", version.model_id, 1, "forest/elm"))
    repository = hub.repositories["models/forest/elm"]
    files = repository.commits[repository.branches["main"]]
    repository.commit({**files, "notes.md": b"by hand", "onnx/a.json": b"{}"}, "by hand")
    reference = pushed(grove("push-hub", version.model_id, 2, "forest/elm"))
    files = repository.commits[reference.rpartition("@")[2]]
    own = [files.pop(name) for name in (".gitattributes", "notes.md", "onnx/a.json")]
    assert own[1:] == [b"by hand", b"{}"] and files == expected(version, second)


def test_a_public_repository_is_written_on_request_alone(site, hub, grove, tmp_path):
    folder = a_model_folder(tmp_path / "elm")
    version = import_folder(site.cast.project, "elm", folder)
    words = ("push-hub", version.model_id, 1)
    pushed(grove(*words, "forest/shown", "--public"))
    shown = hub.repositories["models/forest/shown"]
    assert not shown.private
    before = shown.branches["main"]
    done = grove(*words, "forest/shown")
    assert done.returncode == 1 and "the repository is public; add --public" in done.stderr
    assert shown.branches["main"] == before
    done = grove(*words, "forest/shown", "--public")
    assert done.stdout == f"hf:forest/shown@{before}\n", "what is there needs no commit"


def test_a_push_that_cannot_be_made_says_why_in_one_line(site, hub, grove, tmp_path):
    version = import_folder(site.cast.project, "elm", a_model_folder(tmp_path / "elm"))
    words = ("push-hub", version.model_id, 1)
    down = {"HF_ENDPOINT": "http://me:secret@127.0.0.1:9"}
    cases = [
        ("forest/elm", {"GROVE_HUB": "0"}, "the hub is switched off; set GROVE_HUB=1"),
        ("forest/elm", {"GROVE_HUB": "", "HF_ENDPOINT": ""}, "huggingface.co: the hub is switched"),
        ("forest/elm", {"GROVE_HUB": "on"}, "GROVE_HUB = on: write 1"),
        ("forest/elm", {"HF_TOKEN": ""}, "a push needs a token that may write to it; set HF_TOKEN"),
        ("forest/elm", {"HF_TOKEN": "hf_of_nobody"}, "may not write to it (401); set HF_TOKEN"),
        ("desert/elm", {}, "the token may not write to it (403); set HF_TOKEN to one that may"),
        ("forest/elm", down, "at http://127.0.0.1:9: the hub cannot be reached (ConnectError)"),
        ("elm", {}, "write ORG/NAME"),
        ("forest/e--lm", {}, "write ORG/NAME"),
    ]
    steps = [[variables, [*map(str, words), repository]] for repository, variables, _ in cases]
    missing = [{}, ["push-hub", str(version.model_id), "7", "forest/elm"]]
    done = grove(many=[*steps, missing])
    assert done.returncode == 0, done.stderr
    *results, (status, _, err) = map(json.loads, done.stdout.splitlines())
    for (_, _, part), (code, out, line) in zip(cases, results, strict=True):
        assert (code, out, line.count("\n")) == (1, "", 1) and part in line, line
        assert "hf_of" not in line and "secret" not in line
    assert status == 1 and "404" in err
    assert not hub.repositories, "nothing was made"


def test_a_version_that_the_server_sends_damaged_is_not_committed(site, hub, grove, tmp_path):
    version = import_folder(site.cast.project, "elm", a_model_folder(tmp_path / "elm"))
    listed = ModelVersion.objects.get().files.filter(name="config.json")
    listed.update(size=1)
    done = grove("push-hub", version.model_id, 1, "forest/elm")
    assert done.returncode == 1 and "config.json" in done.stderr and not hub.repositories


def test_problems_are_pushed_and_read_back(site, hub, grove, tmp_path):
    problems = some_problems(4)
    version = stored_version(site.cast, "acorns", problems)
    reference = pushed(grove("push-hub-dataset", version.pk, "forest/acorns"))
    repository = hub.repositories["datasets/forest/acorns"]
    files = repository.commits[reference.rpartition("@")[2]]
    assert repository.private and files["problems.jsonl"] == lines_of(problems)
    text = files["README.md"].decode()
    assert "# dataset:acorns/1\n" in text and f"| Content hash | {version.content_hash} |" in text
    done = grove("problems", "check", reference, "--json", module="engine")
    assert done.returncode == 0 and '"passed": 4' in done.stdout, done.stderr
