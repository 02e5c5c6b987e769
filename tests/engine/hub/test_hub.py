"""Tests of models and data sets of a hub, by the official client against a local server."""

import json
from functools import partial
from pathlib import Path

import pytest

from engine.config.schema import parse_config
from tests.engine.problems import rows
from tests.helpers.hub_server import TOKEN, folder_contents
from tests.helpers.large import large_but
from webapp.registry.model_files.layout import ModelFile, check_model

pytestmark = pytest.mark.slow

SCRIPTS = {
    "pytorch_model.bin": b"\x80\x04.",
    "modeling_oak.py": b"raise SystemExit('this was run')",
    "oak.pkl": b"\x80\x04.",
    "original/model.safetensors": b"another layout",
    "consolidated.safetensors": b"the same weights again",
    "README.md": b"# Oak",
}
"""Files of a repository that are never downloaded."""
LOADED = """
import sys
from engine.policy.models.load import check_model_directory
for reference in sys.argv[1:]:
    print(check_model_directory(reference))
"""
PROBLEMS = "".join(json.dumps(row) + "\n" for row in (rows.MBPP, rows.MBPP_SANITIZED)).encode()


def names_of(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_model_is_downloaded_whole_and_without_code(hub, engine, oak):
    hub.add("models/elms/oak", oak | SCRIPTS)
    done = engine.python(LOADED, "hf:elms/oak@main", token=TOKEN)
    assert done.returncode == 0, done.stderr
    assert folder_contents(Path(done.stdout.strip())) == oak
    assert hub.downloaded() == oak.keys()
    to_storage = [token for _, path, token in hub.requests if path.startswith("/lfs/")]
    assert to_storage and set(to_storage) == {""}, "the token is for the hub alone"
    held = [path for path in engine.home.rglob("*") if path.is_file()]
    assert not [path for path in held if TOKEN.encode() in path.read_bytes()]


def test_a_commit_is_downloaded_once_and_then_needs_no_hub(hub, engine, oak):
    first = hub.add("models/elms/oak", oak).branches["main"]
    changed = {**oak, "generation_config.json": b'{"temperature": 0.5}'}
    second = hub.repositories["models/elms/oak"].commit(changed)
    shown = engine.python(LOADED, f"hf:elms/oak@{first}", "hf:elms/oak@main").stdout
    folders = [Path(line) for line in shown.splitlines()]
    assert [folder.name for folder in folders] == [first, second]
    assert [folder_contents(folder) for folder in folders] == [oak, changed]
    hub.requests.clear()
    down = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    commits = [f"hf:elms/oak@{first}", f"hf:elms/oak@{second}"]
    assert engine.python(LOADED, *commits, **down).stdout == shown and not hub.requests
    (folders[0] / "tokenizer.json").unlink()
    done = engine.python(LOADED, *commits, **down)
    assert "cannot be reached" in done.stderr, "half of a snapshot is none"
    for listing in engine.home.rglob(f"trees/{first}.json"):  # other programs write none
        listing.unlink()
    done = engine.python(LOADED, *commits, **down)
    assert "cannot be reached" in done.stderr, "nobody knows whether it is complete"
    assert engine.python(LOADED, *commits).stdout == shown
    assert folder_contents(folders[0]) == oak


@pytest.mark.parametrize(
    "name", large_but(["model.safetensors"], ["config.json", "model.safetensors"])
)
def test_a_file_that_differs_from_the_list_is_refused_and_fetched_again(hub, engine, oak, name):
    hub.add("models/elms/oak", oak)
    hub.damaged = {name}
    done = engine.python(LOADED, "hf:elms/oak@main")
    assert f"hf:elms/oak@main: {name} is not the file that {hub.address} lists" in done.stderr
    hub.damaged = set()
    done = engine.python(LOADED, "hf:elms/oak@main")
    assert folder_contents(Path(done.stdout.strip())) == oak


UNFIT = [
    ({"config.json": None}, "config.json is missing: it holds the model's shape"),
    ({"model.safetensors": b"no weights"}, "model.safetensors is damaged"),
    ({"config.json": b'{"text_config": {"attn_implementation": "evil/kernel"}}'},
     "config.json names text_config.attn_implementation = 'evil/kernel', code of another"),
    ({"config.json": None, "adapter_config.json": b'{"base_model_name_or_path": "/models/x"}'},
     "holds an adapter, which names its base by itself"),
    (dict.fromkeys(("config.json", "generation_config.json", "lineage.json", "tokenizer.json",
                    "tokenizer_config.json", "chat_template.jinja", "model.safetensors")),
     "lists none of *.safetensors"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "reason"), large_but(UNFIT[:2], UNFIT))
def test_a_model_passes_the_checks_of_every_model(hub, engine, oak, files, reason):
    merged = {name: data for name, data in (oak | files).items() if data is not None}
    hub.add("models/elms/oak", merged | SCRIPTS)
    done = engine.python(LOADED, "hf:elms/oak@main")
    assert done.returncode != 0 and reason in done.stderr.splitlines()[-1]


LOADING = """
import sys
from engine.policy.models.load import ModelError, load_policy
for reference in sys.argv[1:]:
    try:
        print(type(load_policy(reference).model).__name__)
    except ModelError as error:
        print(error)
"""


@pytest.mark.large
@pytest.mark.slow
def test_code_of_a_model_is_not_fetched_whatever_the_user_types(hub, engine, oak):
    code = {"AutoConfig": "elms/code--oak.Config", "AutoModelForCausalLM": "elms/code--oak.Oak"}
    config = json.loads(oak["config.json"]) | {"auto_map": code}
    for name, own in (("known", {}), ("unknown", {"model_type": "oak"})):
        hub.add(f"models/elms/{name}", {**oak, "config.json": json.dumps(config | own).encode()})
    hub.add("models/elms/code", {"oak.py": b"raise SystemExit('this was run')"})
    done = engine.python(LOADING, "hf:elms/known@main", "hf:elms/unknown@main", input="y\n" * 9)
    assert done.returncode == 0, done.stderr
    loaded, error = done.stdout.splitlines()
    assert loaded == "LlamaForCausalLM" and "config.json: " in error
    assert not [path for _, path, _ in hub.requests if "elms/code" in path]


def test_the_hub_is_off_by_default(hub, engine, oak, tmp_path):
    hub.add("datasets/elms/acorns", {"data.jsonl": PROBLEMS})
    check = ["problems", "check", "hf:elms/acorns@main"]
    off = "hf:elms/acorns@main: the Hugging Face hub is switched off; set GROVE_HUB=1 to use "
    results = engine.run(
        ({"GROVE_HUB": "0"}, check),
        ({"GROVE_HUB": "", "HF_ENDPOINT": ""}, check),
        ({"GROVE_HUB": "", "HF_ENDPOINT": ""}, ["problems", "pull", check[-1], f"{tmp_path}/x"]),
        ({"GROVE_HUB": "yes"}, check),
    )
    assert [status for status, _, _ in results] == [2] * 4
    assert off + hub.address in results[0][2]
    assert off + "https://huggingface.co" in results[1][2] and off in results[2][2]
    assert "GROVE_HUB = yes: write 1" in results[3][2]
    assert not hub.requests and not (tmp_path / "x").exists()
    ((status, _, _),) = engine.run(check, GROVE_HUB="")
    assert status == 0, "an endpoint of one's own is enough"


def test_each_refusal_is_one_sentence_with_the_remedy(hub, engine):
    files = {"data.jsonl": PROBLEMS}
    hub.add("datasets/elms/acorns", files)
    hub.add("datasets/elms/hidden", files, private=True)
    hub.add("datasets/elms/gated", files, gated=True)
    hub.add("datasets/elms/code", {"load.py": b"x", "data.bin": b"x"})
    wrong, right = {"HF_TOKEN": "hf_of_nobody_at_all"}, {"HF_TOKEN": TOKEN}
    none, down = {"HF_TOKEN": ""}, {"HF_ENDPOINT": "http://me:secret@127.0.0.1:9"}
    cases = [
        (none, "elms/none@main", "neither as public nor as readable; check the name, or set HF_TO"),
        (right, "elms/none@main", "to the token of HF_TOKEN or of `hf auth login` neither"),
        (none, "elms/acorns@next", "has no revision next of the dataset elms/acorns; name a branc"),
        (none, f"elms/acorns@{'0' * 40}", f"has no revision {'0' * 40} of the dataset elms/acorns"),
        (none, "elms/hidden@main", "or set HF_TOKEN to a token that may read it"),
        (wrong, "elms/hidden@main", "HF_TOKEN or of `hf auth login` (401); set HF_TOKEN to a vali"),
        (right, "elms/gated@main", "elms/gated is gated: accept its terms on"),
        (none, "elms/gated@main", f"{hub.address}/datasets/elms/gated, and set HF_TOKEN to a toke"),
        (none, "elms/code@main", f"{hub.address} lists none of *.jsonl, "),
        (down, "elms/acorns@main", "the hub http://127.0.0.1:9 cannot be reached (ConnectError)"),
    ]
    steps = [(env, ["problems", "check", f"hf:{name}"]) for env, name, _ in cases]
    for (_, name, part), (status, out, err) in zip(cases, engine.run(*steps), strict=True):
        assert (status, out) == (2, "") and part in err, (name, err)
        (line,) = err.splitlines()
        assert line.startswith(f"HubError: hf:{name}: ") and "http://127.0.0.1" in line
        assert "hf_of" not in line and "secret" not in line
    assert not hub.downloaded()
    ((status, _, _),) = engine.run(["problems", "check", "hf:elms/hidden@main"], token=TOKEN)
    assert status == 0


def test_an_endpoint_that_is_no_hub_is_reported_as_such(hub, engine, site_of_text):
    check = ["problems", "check", "hf:elms/acorns@main"]
    ((status, _, err),) = engine.run(check, HF_ENDPOINT=site_of_text)
    assert status == 2 and "does not respond as a hub does" in err and "HF_ENDPOINT" in err


@pytest.fixture
def site_of_text():
    """Address of a server that answers every request with a page."""
    import threading
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"<html")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_data_set_is_read_in_any_format_and_pulled_byte_for_byte(hub, engine, tmp_path):
    mbpp = {"data/train.jsonl": PROBLEMS}
    other = {"README.md": b"x", "mbpp.py": b"x", "data/x.pkl": b"x", ".hidden/a.json": b"[1]"}
    commit = hub.add("datasets/elms/acorns", mbpp | other).branches["main"]
    target = tmp_path / "acorns"
    checked, pulled, again = engine.run(
        ["problems", "check", "hf:elms/acorns@main", "--json"],
        ["problems", "pull", "hf:elms/acorns@main", str(target), "--json"],
        ["problems", "pull", "hf:elms/acorns@main", str(target)],
    )
    report = json.loads(checked[1])
    assert checked[0] == 0 and report["format"] == "mbpp" and report["totals"]["passed"] == 2
    assert json.loads(pulled[1]) == {
        "directory": str(target), "reference": f"hf:elms/acorns@{commit}",
        "files": {name: len(data) for name, data in mbpp.items()},
    }  # fmt: skip
    assert folder_contents(target) == mbpp
    assert again[0] == 2 and "exists and is not an empty directory" in again[2]
    assert hub.downloaded() == {"train.jsonl"}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".acorns")]


def test_a_model_is_pulled_complete_with_its_commit_or_not_at_all(hub, engine, oak, tmp_path):
    own = {**oak, "lineage.json": json.dumps({"seed": 7}).encode()}
    repository = hub.add("models/elms/oak", own | SCRIPTS)
    commit = repository.branches["main"]
    broken = repository.commit({**own, "tokenizer.json": b"{"}, branch="broken")
    target, other = tmp_path / "models" / "oak", tmp_path / "models" / "broken"
    pulled, refused = engine.run(
        ["models", "pull", "hf:elms/oak@main", str(target)],
        ["models", "pull", "hf:elms/oak@broken", str(other)],
    )
    sizes = sum(map(len, own.values()))
    line = f"{target}: {len(own)} files, {sizes:,} bytes of hf:elms/oak@{commit}\n"
    assert pulled == [0, line, ""]
    lineage = json.loads((target / "lineage.json").read_text())
    source = {"endpoint": hub.address, "repository": "elms/oak", "commit": commit}
    assert lineage == {"seed": 7, "hub": source}
    assert {**folder_contents(target), "lineage.json": own["lineage.json"]} == own
    assert not any(path.is_symlink() for path in target.iterdir()), "it outlives the cache"
    assert refused[0] == 2 and broken in refused[2] and "tokenizer.json is not valid" in refused[2]
    assert list(target.parent.iterdir()) == [target]
    check_model([ModelFile(p.name, p.stat().st_size, partial(p.open, "rb"))
                 for p in target.iterdir()])  # fmt: skip


def test_the_doctor_knows_the_size_of_a_model_that_a_run_would_download(hub, engine, oak):
    hub.add("models/elms/oak", oak)
    words = ["doctor", "demo", "agents.oak.model=hf:elms/oak@main", "--json"]
    off, on = engine.run(({"GROVE_HUB": "0"}, words), ({"GROVE_HUB": "1"}, words))
    assert off[0] == 2 and "the Hugging Face hub is switched off" in off[2]
    needs = {need["what"]: need for need in json.loads(on[1])["needs"]}
    model, starter = (needs[f"agents.{name}.model"] for name in ("oak", "fern"))
    assert model["fits"] and "unknown" not in model["needs"] and model["has"] == starter["has"]


PINNED = """
import sys
from pathlib import Path
from engine.config.schema import read_config
from engine.hub.pins import pin_run
config = read_config(Path(sys.argv[1]) / "config.json")
print(pin_run(config, Path(sys.argv[1])).model_dump_json(indent=1))
"""


def test_a_run_keeps_the_commits_with_which_it_began(hub, engine, tmp_path):
    repository = hub.add("models/elms/oak", {"config.json": b"{}"})
    before = repository.branches["main"]
    acorns = hub.add("datasets/elms/acorns", {"data.jsonl": PROBLEMS}).branches["main"]
    agents = [
        {"name": "first", "model": "hf:elms/oak@main"},
        {"name": "second", "model": "starter:fern"},
        {"name": "third", "shares_weights_with": "first"},
    ]
    config = parse_config({"agents": agents, "problems": {"dataset": "hf:elms/acorns@main"}})
    file = tmp_path / "config.json"
    file.write_text(config.model_dump_json())
    shown = engine.python(PINNED, str(tmp_path)).stdout
    assert json.loads(shown) == json.loads(file.read_text())
    requests = [path for _, path, _ in hub.requests if "revision" in path]
    assert len(requests) == 2, "agents that name one model have one commit of it"
    repository.commit({"config.json": b"{ }"}, "second")
    assert engine.python(PINNED, str(tmp_path)).stdout == shown
    stored = json.loads(file.read_text())
    models = [agent["model"] for agent in stored["agents"]]
    assert models == [f"hf:elms/oak@{before}", "starter:fern", f"hf:elms/oak@{before}"]
    assert stored["problems"]["dataset"] == f"hf:elms/acorns@{acorns}"
    assert [path.name for path in tmp_path.iterdir() if "draft" in path.name] == []
