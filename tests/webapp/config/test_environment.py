"""Tests of the environment variables: allowed values, and the errors for others."""

import os
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings

from engine.config.deadlines import VARIABLES
from engine.resources.machine_memory import machine_memory
from tests.helpers.extras import is_skipped
from tests.helpers.waiting import patience
from webapp.config import environment as env
from workers.local.service_commands import worker_command
from workers.runs.engine_environment import engine_environment


@pytest.mark.parametrize("text, value", [("1", True), ("Yes", True), ("off", False), ("", False)])
def test_a_flag_is_read(text, value):
    assert env.read_flag({"X": text}, "X", not value) is value


def test_an_unset_flag_keeps_its_default():
    assert env.read_flag({}, "X", True) is True


def test_a_bad_flag_names_variable_value_and_remedy():
    with pytest.raises(env.SettingError, match="GROVE_DEBUG = 'maybe': give 1 or 0"):
        env.read_flag({"GROVE_DEBUG": "maybe"}, "GROVE_DEBUG", False)


@pytest.mark.parametrize("text", ["0", "65536", "-1", "http", "8e3", "²"])
def test_a_port_out_of_range_is_refused(text):
    with pytest.raises(env.SettingError, match="from 1 to 65535"):
        env.read_integer({"GROVE_PORT": text}, "GROVE_PORT", 8000, 1, 65535)


def test_the_caps_of_the_sandbox_have_defaults_and_reach_the_engine():
    result = env.read_sandbox_caps({"GROVE_SANDBOX_MEMORY_MB": "96"})
    assert result.environment() == {
        "GROVE_SANDBOX_SECONDS": "60",
        "GROVE_SANDBOX_MEMORY_MB": "96",
        "GROVE_SANDBOX_OUTPUT_MB": "64",
    }
    with pytest.raises(env.SettingError, match=r"GROVE_SANDBOX_SECONDS = '0': .*1 to 3600"):
        env.read_sandbox_caps({"GROVE_SANDBOX_SECONDS": "0"})
    assert engine_environment().items() >= settings.SANDBOX_CAPS.environment().items()


def test_memory_is_by_default_a_share_of_what_the_machine_has():
    half = machine_memory() // 2
    assert half - (1 << 20) < env.read_memory({}, "GROVE_IMPORT_MEMORY_MIB", 50) <= half
    assert env.read_memory({"X": "3"}, "X", 50) == 3 << 20
    for name, most in (("GROVE_IMPORT_MEMORY_MIB", settings.IMPORT_MEMORY_BYTES),
                       ("GROVE_ENGINE_MEMORY_MIB", settings.ENGINE_MEMORY_BYTES)):  # fmt: skip
        assert name in os.environ or most < machine_memory()


@pytest.mark.parametrize(
    "text, remedy",
    [("HF_TOKEN,DATABASE_URL", "DATABASE_URL"), ("GROVE_SECRET_KEY", "never gets"),
     ("PGPASSWORD", "never gets"), ("A=b", "give names"), ("HF_*", "give names")],
)  # fmt: skip
def test_engines_inherit_no_variable_of_the_site_even_if_it_is_named(text, remedy):
    name = "GROVE_ENGINE_ENVIRONMENT"
    with pytest.raises(env.SettingError, match=rf"{name} = .*{remedy}"):
        env.read_engine_environment({name: text}, name)
    assert env.read_engine_environment({name: "HF_TOKEN, X"}, name) == {"HF_TOKEN", "X"}


def test_hosts_are_split_at_commas():
    assert env.read_list({"H": "a.org, b.org,"}, "H", []) == ["a.org", "b.org"]


def test_a_path_is_absolute():
    assert env.read_path({"GROVE_VAR": "x"}, "GROVE_VAR", Path("/y")).is_absolute()


def test_directories_are_split_at_commas():
    result = env.read_paths({"GROVE_MODELS": "/a, b"}, "GROVE_MODELS", Path("/y"))
    assert result == [Path("/a"), Path("b").absolute()]
    assert env.read_paths({}, "GROVE_MODELS", Path("/y")) == [Path("/y")]


def test_addresses_and_networks_are_split_at_commas():
    result = env.read_addresses({"P": "10.0.0.5, 2001:db8::/32"}, "P")
    assert result == ["10.0.0.5", "2001:db8::/32"] and env.read_addresses({}, "P") == []


@pytest.mark.parametrize("text", ["*", "proxy.example.org", "10.0.0.5/8", "10.0.0.256"])
def test_text_that_is_no_address_is_refused(text):
    with pytest.raises(env.SettingError, match=r"P = .*: give IP addresses or networks"):
        env.read_addresses({"P": f"127.0.0.1,{text}"}, "P")


def test_a_broker_of_unknown_kind_is_refused():
    with pytest.raises(env.SettingError, match="redis"):
        env.read_broker({"BROKER_URL": "kafka://x"}, "BROKER_URL", "filesystem://")


def test_a_database_url_becomes_djangos_settings():
    result = env.database("postgresql://me:se%40cret@db.example:5433/grove?sslmode=require")
    assert result["NAME"] == "grove" and result["USER"] == "me" and result["PASSWORD"] == "se@cret"
    assert result["HOST"] == "db.example" and result["PORT"] == "5433"
    assert result["OPTIONS"]["sslmode"] == "require"


def test_a_socket_directory_is_a_host():
    result = env.database("postgresql://grove@/grove?host=/run/grove")
    assert result["HOST"] == "/run/grove" and result["PORT"] == ""


@pytest.mark.parametrize("url", ["sqlite:///x.db", "mysql://x/y"])
def test_another_database_engine_is_refused(url):
    with pytest.raises(env.SettingError, match="starts with postgresql"):
        env.database(url)


def test_a_database_without_a_name_is_refused():
    with pytest.raises(env.SettingError, match="name the database"):
        env.database("postgresql://me@host/")


def test_a_running_embedded_server_is_located_by_its_url_file(tmp_path):
    (tmp_path / "postgres.url").write_text("postgresql://grove@/grove?host=/s\n")
    assert env.database_url({}, tmp_path) == "postgresql://grove@/grove?host=/s"


def test_the_environment_wins_over_the_embedded_server(tmp_path):
    (tmp_path / "postgres.url").write_text("postgresql://a@/a")
    assert env.database_url({"DATABASE_URL": "postgresql://b@/b"}, tmp_path) == "postgresql://b@/b"


def test_the_secret_key_is_made_once_for_its_owner_only(tmp_path):
    var = tmp_path / "var"
    key = env.secret_key({}, var)
    assert env.secret_key({}, var) == key and len(key) >= 32
    assert stat.S_IMODE((var / "secret_key").stat().st_mode) == 0o600
    assert [path.name for path in var.iterdir()] == ["secret_key"]


def test_processes_that_start_at_once_agree_on_the_secret_key(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: env.secret_key({}, tmp_path / "var"), range(32)))
    assert len(keys) == 1


def test_a_short_secret_key_is_refused_without_printing_it():
    with pytest.raises(env.SettingError, match="at least 32") as refusal:
        env.secret_key({"GROVE_SECRET_KEY": "hunter2"}, Path("/nowhere"))
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("url", ["redis://[::1", "redis://h:port", "amqp://h:99999"])
def test_a_broker_that_is_no_url_is_refused(url):
    with pytest.raises(env.SettingError, match=r"BROKER_URL = .* is no URL"):
        env.read_broker({"BROKER_URL": url}, "BROKER_URL", "filesystem://")


@pytest.mark.parametrize(
    "url", ["postgresql://[::1/db", "postgresql://h:port/db", "postgresql://h:99999/db",
            "postgresql://h/\udcff", "postgresql://h/db?nonsense=1"],
)  # fmt: skip
def test_a_database_url_that_cannot_be_meant_is_refused(url):
    with pytest.raises(env.SettingError, match="DATABASE_URL"):
        env.database(url)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:gehe@im@h/db",
        "postgresql://u:gehe/im@h/db",
        "postgresql://u:geheim@h:77777/db",
        "postgresql://u:geheim%zz@h/db",
        "postgresql://u@h/?password=geheim",
        "postgresql://u@h/?sslpassword=geheim&x=1",
        "host=h password='ge heim' dbname=x",
        "postgres:u:geheim@h/db",
    ],
)
def test_an_error_shows_no_part_of_a_password(url):
    with pytest.raises(env.SettingError) as refusal:
        env.database(url)
    assert "***" in str(refusal.value) and "DATABASE_URL" in str(refusal.value)
    assert "ge" not in str(refusal.value) and "heim" not in str(refusal.value)


@pytest.mark.parametrize("url", ["mysql://me:hunter2@h/x", "postgresql://me:hunter%zz@h/x"])
def test_a_refusal_does_not_print_the_password(url):
    with pytest.raises(env.SettingError, match=r"me:\*\*\*@h") as refusal:
        env.database(url)
    assert "hunter" not in str(refusal.value)


@pytest.mark.parametrize("path", ["~nobody-here/x", "x" * 5000, "/tmp/\udcff"])
def test_a_path_that_cannot_be_is_refused(path):
    with pytest.raises(env.SettingError, match="GROVE_VAR"):
        env.read_path({"GROVE_VAR": path}, "GROVE_VAR", Path("/y"))


def test_a_data_directory_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "var").write_text("")
    with pytest.raises(env.SettingError, match=r"GROVE_VAR = .*var'.*give a directory"):
        env.secret_key({}, tmp_path / "var")


def test_a_damaged_key_is_named_and_a_damaged_url_is_as_none(tmp_path):
    (tmp_path / "secret_key").write_bytes(b"\xff" * 50)
    with pytest.raises(env.SettingError, match="is damaged; delete it"):
        env.secret_key({}, tmp_path)
    (tmp_path / "postgres.url").write_bytes(b"\xff")
    assert str(tmp_path / "postgres") == env.database(env.database_url({}, tmp_path))["HOST"]


def test_the_embedded_server_may_lie_anywhere():
    var = Path("/a b/c?d#e%41/é")
    assert env.database(env.database_url({}, var))["HOST"] == str(var / "postgres")


def test_no_hosts_are_the_default_hosts():
    assert env.read_list({"H": " , "}, "H", ["a.org"]) == ["a.org"]


@pytest.mark.parametrize(
    "name, value",
    [
        ("GROVE_PORT", "http"),
        ("BROKER_URL", "kafka://x"),
        ("GROVE_VAR", "/dev/null"),
        ("GROVE_PATIENCE", "0"),
        ("GROVE_RUN_LEASE_SECONDS", "soon"),
    ],
)
def test_a_command_refuses_a_variable_in_one_line(tmp_path, name, value):
    environment = {**os.environ, "GROVE_VAR": str(tmp_path), name: value}
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "check"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60 * patience()
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{name} = '{value}': ")


@pytest.mark.parametrize("given, seconds", [({}, 10.0), ({"GROVE_PATIENCE": "3"}, 30.0)])
def test_the_site_waits_for_a_connection_to_the_database_with_patience(monkeypatch, given, seconds):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    pool = env.database("postgresql://me@h/x")["OPTIONS"]["pool"]
    assert pool == {"min_size": 0, "max_size": 16, "reconnect_timeout": 5.0, "timeout": seconds}


def test_an_engine_command_that_no_shell_reads_is_refused(monkeypatch):
    monkeypatch.setenv("GROVE_ENGINE_COMMAND", 'python "')
    with pytest.raises(env.SettingError, match="GROVE_ENGINE_COMMAND"):
        worker_command()


STARTS = """
import django, socket
django.setup()
from django.conf import settings
(settings.RUNS_DIR / "new").mkdir()
(settings.RUNS_DIR / "new" / "events.jsonl").write_text("{}")
socket.socket(socket.AF_UNIX).bind(str(settings.GROVE_VAR / "s"))
"""


def open_to_others(folder: Path) -> list[str]:
    results = [folder, *folder.rglob("*")]
    return [str(path) for path in results if path.lstat().st_mode & 0o077 and not path.is_symlink()]


@pytest.fixture
def open_umask():
    """The usual umask of accounts, and that of earlier releases."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_nobody_else_reads_what_is_written_and_old_installs_are_mended(tmp_path):
    """A directory as earlier releases left it, world-readable with everything in it."""
    var, theirs = tmp_path / "var", tmp_path / "theirs"
    for folder in ("runs/old/checkpoints", "broker", "logs", "postgres", "datasets"):
        (var / folder).mkdir(parents=True)
    for path in (*(var / "runs/old" / name for name in ("events.jsonl", "checkpoints/weights")),
                 var / "broker/message", var / "logs/web.log", var / "lock",
                 var / "datasets/own", theirs):  # fmt: skip
        path.write_text("secret")
        path.chmod(0o644)
    (var / "runs/old/link").symlink_to(theirs)
    var.chmod(0o755)
    assert len(open_to_others(var)) > 9
    environment = {
        **os.environ,
        "GROVE_VAR": str(var),
        "DJANGO_SETTINGS_MODULE": "webapp.config.settings",
    }
    subprocess.run(
        [sys.executable, "-c", STARTS],
        env=environment,
        check=True,
        timeout=60 * patience(),
        umask=0o022,
    )
    kept = {"datasets", "datasets/own", "postgres"}  # created by people or by another account
    assert {str(Path(path).relative_to(var)) for path in open_to_others(var)} == kept
    assert stat.S_IMODE(var.stat().st_mode) == 0o700 and (var / "s").is_socket()
    assert stat.S_IMODE(theirs.stat().st_mode) == 0o644, "nothing behind a link is touched"


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to become another account")
@pytest.mark.usefixtures("open_umask")
def test_another_account_reads_nothing_in_var(tmp_path):
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are in a closed one
        Path(folder).chmod(0o755)
        var = Path(folder) / "var"
        (var / "runs").mkdir(parents=True)
        (var / "runs" / "events.jsonl").write_text("secret")
        nobody_else_reads(var, tmp_path)


def nobody_else_reads(var: Path, base: Path) -> None:

    def read() -> int:
        command = ["cat", str(var / "runs" / "events.jsonl")]
        return subprocess.run(command, user=65534, group=65534, extra_groups=[]).returncode

    assert read() == 0
    env.read_var({"GROVE_VAR": str(var)}, "GROVE_VAR", base)
    assert read() != 0


def test_a_directory_of_all_accounts_is_not_taken(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(env.SettingError, match=r"GROVE_VAR.*a directory of its own"):
        env.read_var({"GROVE_VAR": str(shared)}, "GROVE_VAR", tmp_path)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


def test_the_address_of_the_site_is_given_or_follows_from_the_hosts():
    def site(value="", https=False, hosts=("*", ".example", "grove.example", "other")):
        return env.read_site({"S": value}, "S", https, list(hosts), 8000)

    assert site("https://lab.example:8443/") == "https://lab.example:8443"
    assert site(https=True) == "https://grove.example"
    assert site() == "http://grove.example:8000" and site(hosts=["*"]) == "http://localhost:8000"
    for wrong in (
        "grove.example", "ftp://grove.example", "https://", "https://a.example/path", "https://a:x",
        "https://a.example?q", "https://a.example#f", "https://me:pw@a.example", "https://a b",
    ):  # fmt: skip
        with pytest.raises(env.SettingError, match=r"^S = "):
            site(wrong)


@pytest.mark.parametrize("around", ["{}\n", " {}\r\n", "\t{} "])
def test_keys_of_services_lose_the_blanks_and_line_ends_around_them(around):
    secret = "s3cret-of-an-oak-tree"
    given = around.format(secret)
    assert env.read_token({"GROVE_METRICS_TOKEN": given}, "GROVE_METRICS_TOKEN") == secret
    oidc = {"GROVE_OIDC_ISSUER": "https://elm.example", "GROVE_OIDC_CLIENT": given}
    provider = env.read_provider({**oidc, "GROVE_OIDC_SECRET": given})
    assert (provider.client, provider.secret) == (secret, secret)
    if not is_skipped("storages"):
        keys = {"GROVE_S3_BUCKET": "b", "GROVE_S3_KEY": given, "GROVE_S3_SECRET": given}
        options = env.read_artifact_storage(keys, Path("/tmp"))["OPTIONS"]
        assert (options["access_key"], options["secret_key"]) == (secret, secret)


@pytest.mark.parametrize("secret", ["an-oak-\n-tree-of-keys", "an-oak-\u200b-tree-of-keys"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(secret):
    for name in ("GROVE_OIDC_SECRET", "GROVE_METRICS_TOKEN"):
        with pytest.raises(env.SettingError, match="copy the key again") as refused:
            env.read_secret({name: secret}, name)
        assert name in str(refused.value) and "oak" not in str(refused.value)
        assert "its character 8 " in str(refused.value)
