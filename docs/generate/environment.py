"""The page of environment variables: how the code reads each, and its `environment.toml` text."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docs.generate import markdown
from docs.generate.markdown import code, table
from engine.config.deadlines import DEADLINES, MAX_PATIENCE, PATIENCE
from engine.sandbox.limits import DEFAULTS, MAX_CAPS, variable
from webapp.config.secret_files import SECRETS

ROOT = Path(__file__).resolve().parents[2]
MEANINGS = ROOT / "docs" / "environment.toml"
NAME = re.compile(
    r"GROVE_[A-Z0-9]+(?:_[A-Z0-9]+)*|DATABASE_URL|BROKER_URL|RAY_ADDRESS|OPENAI_API_KEY|HF_ENDPOINT"
)
TITLES = {
    "services": "Services",
    "site": "The site",
    "limits": "Limits",
    "programs": "Programs and files on the server",
    "workers": "Workers",
    "deadlines": "Deadlines on a busy machine",
    "hub": "Hugging Face hub",
    "clients": "Clients",
}
OF_LIBRARIES = {
    "HF_TOKEN",
    "HF_HOME",
    "HF_HUB_DISABLE_XET",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_SERVICE_NAME",
}
"""Variables that a library reads, which this page describes nevertheless."""
ABOUT = """
Everything is embedded until a variable points it elsewhere. A value that cannot be used is refused
at the start, with the variable, the value and the remedy.
"""
FILES = """
## Secrets from files

{names} may each come from a file, as container platforms and systemd provide secrets: set the
variable's name with `_FILE` to the file's path, as in
`GROVE_SECRET_KEY_FILE=/run/secrets/secret_key`. The file has one line; blanks, line ends and byte
order marks around a secret are no part of it, however it is set. Web process, worker and all
commands of the server read it at their start; a variable that is set in both ways is refused.
"""


class NotDescribed(Exception):
    """Variables that are read and not described, or described and not read."""


def page(described_in: Path = MEANINGS) -> str:
    meanings = tomllib.loads(described_in.read_text("utf-8"))
    described = {name for section in meanings.values() for name in section}
    if differing := described ^ (read_names() | OF_LIBRARIES):
        raise NotDescribed(
            f"{described_in.name} and the code differ in {', '.join(sorted(differing))}"
        )
    return markdown.page("Environment variables", ABOUT, *_parts(meanings), _files())


def _files() -> str:
    """Returns the section about secrets from files."""
    *names, last = map(code, SECRETS)
    return FILES.format(names=f"{', '.join(names)} and {last}").strip()


def _parts(meanings: dict[str, dict[str, str]]) -> Iterator[str]:
    reads = {**_typed_reads(), **_caps(), **_deadlines()}
    for section, title in TITLES.items():
        yield f"## {title}"
        rows = [
            (code(name), *reads.get(name, ("", "")), about)
            for name, about in meanings[section].items()
        ]
        yield table(("variable", "values", "default", "meaning"), rows)


def read_names() -> set[str]:
    """Returns the names of variables that are whole strings in engine, webapp or workers."""
    names = set(map(variable, DEFAULTS))
    for tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                names |= {node.value} & set(NAME.findall(node.value))
    return names


def _typed_reads() -> dict[str, tuple[str, str]]:
    """Returns (values, default) of typed reads: `read_flag(env, NAME, ...)`."""
    reads = {}
    for tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and len(node.args) >= 3:
                reader = ast.unparse(node.func).rsplit(".", 1)[-1]
                of_process = not isinstance(node.args[0], ast.Dict)
                if reader in _READERS and of_process and isinstance(node.args[1], ast.Constant):
                    reads[node.args[1].value] = _READERS[reader](*map(_value, node.args[2:]))
    return reads


def _value(node: ast.expr) -> str:
    """Returns a constant as text, 10**9 evaluated; else the expression."""
    text = ast.unparse(node)
    if re.fullmatch(r"[\d_]+(\s*\*\*\s*\d+)?", text):
        base, _, power = text.partition("**")
        return f"{int(base) ** int(power or 1):,}"
    return text


def _integer(default: str, low: str, high: str) -> tuple[str, str]:
    return f"{low} to {high}", default.replace(",", "") if len(default) < 7 else default


_READERS = {
    "read_integer": _integer,
    "read_mebibytes": lambda default: ("MiB", default),
    "read_memory": lambda percent: ("MiB", f"{percent} % of the machine's memory"),
    "read_flag": lambda default: ("1 or 0", "1" if default == "True" else "0"),
    "read_list": lambda default: (
        "words, separated by commas",
        ", ".join(map(code, ast.literal_eval(default))),
    ),
}


def _caps() -> dict[str, tuple[str, str]]:
    return {
        variable(key): (f"1 to {MAX_CAPS[key]:,}", f"{default:,}")
        for key, default in DEFAULTS.items()
    }


def _deadlines() -> dict[str, tuple[str, str]]:
    seconds = {name: ("seconds", f"{one.default:g}") for name, one in DEADLINES.items()}
    return {PATIENCE: (f"1 to {MAX_PATIENCE}", "1"), **seconds}


@cache
def _trees() -> list[ast.Module]:
    """Returns the syntax trees of the files that contain a variable's name."""
    rooms = ("engine", "webapp", "workers")
    files = sorted(file for room in rooms for file in (ROOT / room).rglob("*.py"))
    texts = [file.read_text("utf-8") for file in files]
    return [ast.parse(text) for text in texts if NAME.search(text)]
