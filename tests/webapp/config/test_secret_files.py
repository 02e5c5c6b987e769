"""Tests of secrets that files contain."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.waiting import patience
from webapp.config.environment import SettingError, database, read_broker, read_mail
from webapp.config.secret_files import MAX_BYTES, SECRETS, read_secret_files

ROOT = Path(__file__).resolve().parents[3]


def test_the_text_of_the_file_becomes_the_value_for_this_process_and_its_children(tmp_path):
    file = tmp_path / "secret"
    file.write_text("a = secret / with: signs\r\n")
    given = {f"{name}_FILE": str(file) for name in SECRETS}
    env = {**given, "GROVE_PORT_FILE": "/nowhere", "GROVE_SECRET_KEY": ""}
    read_secret_files(env)
    read_secret_files(env)
    expected = dict.fromkeys(SECRETS, "a = secret / with: signs")
    assert env == {**expected, "GROVE_PORT_FILE": "/nowhere"}


@pytest.mark.parametrize("around", ["{}\r\n", "\ufeff{}\n", "\xa0{}\u200b", " {}\t\n", "{}"])
def test_what_stands_around_a_secret_is_no_part_of_it(tmp_path, around):
    file = tmp_path / "secret"
    file.write_text(around.format("a = secret"), "utf-8")
    for given in (str(file), None):
        env = {f"{n}_FILE": given for n in SECRETS} if given else {}
        env = env or {name: around.format("a = secret") for name in SECRETS}
        read_secret_files(env)
        assert env == dict.fromkeys(SECRETS, "a = secret")


def test_a_password_with_a_line_end_within_is_not_shown():
    with pytest.raises(SettingError) as error:
        database("mysql://me:PUD\nDING@host/name")
    assert "PUD" not in str(error.value) and "DING" not in str(error.value)


@pytest.mark.parametrize("password", ["PUD/DING", "PUD#DING", "PUD?DING", "PUD[DING", "PUD@DING"])
def test_a_password_that_is_not_escaped_is_not_shown(password):
    messages = []

    def broker(url):
        return read_broker({"BROKER_URL": url}, "BROKER_URL", "")

    def mail(url):
        return read_mail({"GROVE_MAIL_URL": url})

    for read, scheme in (
        (broker, "redis"),
        (broker, "amqp"),
        (mail, "smtp"),
        (database, "postgresql"),
    ):
        try:
            read(f"{scheme}://me:{password}@host:1/name")
        except SettingError as error:
            messages.append(str(error))
    assert messages  # what is accepted is read as it was meant
    assert not any("PUD" in one or "DING" in one for one in messages), messages


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (None, "name a file that this account can read (No such file or directory)"),
        (b"", "the file must contain one line, the value of GROVE_S3_SECRET"),
        (b"\n", "the file must contain one line"),
        (b"one\ntwo\n", "the file must contain one line"),
        (b"one\0", "the file must contain one line"),
        (b"\xff\xfe", "its text is not UTF-8"),
        (b"x" * (MAX_BYTES + 1), "the file must contain one line"),
    ],
)
def test_an_unusable_file_is_named_and_its_text_is_not(tmp_path, content, cause):
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingError) as error:
        read_secret_files({"GROVE_S3_SECRET_FILE": str(file)})
    assert str(error.value).startswith(f"GROVE_S3_SECRET_FILE = '{file}': ")
    assert cause in str(error.value) and "one\n" not in str(error.value)


def test_a_directory_is_no_file(tmp_path):
    with pytest.raises(SettingError, match="Is a directory"):
        read_secret_files({"BROKER_URL_FILE": str(tmp_path)})


def test_a_secret_that_is_set_in_both_ways_is_refused():
    env = {"DATABASE_URL": "postgresql://me:secret@host/name", "DATABASE_URL_FILE": "/x"}
    with pytest.raises(SettingError, match="DATABASE_URL is set, too; unset one") as error:
        read_secret_files(env)
    assert "secret@" not in str(error.value)


@pytest.mark.large
def test_settings_take_their_secrets_from_files(tmp_path):
    for name, text in (("key", "k" * 40), ("database", "postgresql://a:b@c/d")):
        (tmp_path / name).write_text(f"{text}\n")
    left = {n: v for n, v in os.environ.items() if n not in SECRETS}
    environment = {
        **left, "GROVE_VAR": str(tmp_path / "var"),
        "DJANGO_SETTINGS_MODULE": "webapp.config.settings",
        "GROVE_SECRET_KEY_FILE": str(tmp_path / "key"),
        "DATABASE_URL_FILE": str(tmp_path / "database"),
    }  # fmt: skip
    program = "from django.conf import settings as s; print(s.SECRET_KEY, s.DATABASE_URL)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True,
        timeout=60 * patience(),
    )  # fmt: skip
    assert done.stdout.split() == ["k" * 40, "postgresql://a:b@c/d"], done.stderr
