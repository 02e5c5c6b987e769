"""Typed readers of environment variables.

Invariant: a returned value is usable. For any other, the reader raises `SettingError`, which names
the variable, the value and the remedy, before anything starts.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import re
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from engine.config import deadlines
from engine.config.deadlines import DATABASE_CONNECTION
from engine.config.errors import ConfigError, printable, shown
from engine.config.log_lines import JSON, TEXT, VARIABLE, log_format
from engine.config.secrets import bare
from engine.resources.machine_memory import machine_memory
from engine.sandbox.limits import DEFAULTS, MAX_CAPS, SandboxCaps, variable
from webapp.config.installation import default_var
from webapp.config.private_files import SharedDirectory, keep_private

Environment = Mapping[str, str]

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}
_BROKERS = ("filesystem", "redis", "rediss", "sentinel", "amqp", "amqps")
_PASSWORD = re.compile(
    r"(?P<before>:(?!//))(?P<password>.+)(?=@)"
    r"|(?P<name>(?i:password\s*=\s*))(?P<value>'(?:[^'\\]|\\.)*'?|[^&\s]+)",
    re.DOTALL,
)
"""Passwords in addresses, which may hold `@` and `/` themselves, and in their parameters."""
# The error itself repeats a password that holds a slash as the port.
_NO_URL = "is no URL; write @ : / # ? and [ of a password as %40 %3A %2F %23 %3F and %5B"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OF_THE_SITE = re.compile(r"DATABASE_URL$|BROKER_URL$|DJANGO_|GROVE_|PG[A-Z]+$")
# After an outage of minutes psycopg would try again as long after the one before: so each attempt
# ends after 5 s, and the next request begins another.
_POOL = {"min_size": 0, "max_size": 16, "reconnect_timeout": 5.0}


class SettingError(ValueError):
    """Raised for an environment variable with an unusable value."""

    def __init__(self, name: str, value: str, remedy: str):
        for found in _PASSWORD.finditer(value):
            remedy = remedy.replace(found["password"] or found["value"], "***")
        hidden = _PASSWORD.sub(lambda found: f"{found['before'] or found['name']}***", value)
        super().__init__(f"{name} = {shown(hidden)!r}: {remedy}")


def read_flag(env: Environment, name: str, default: bool) -> bool:
    """A switch: 1/true/yes/on or 0/false/no/off."""
    value = env.get(name)
    if value is None:
        return default
    if value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    raise SettingError(name, value, "give 1 or 0")


def read_secret(env: Environment, name: str) -> str:
    """A key, an id or a token of another service, without what a mounted file or a copy has around
    it (`engine.config.secrets`); empty if it is not set."""
    value = bare(env.get(name, ""))
    if not value.isprintable():
        place = next(i for i, one in enumerate(value, start=1) if not one.isprintable())
        remedy = f"its character {place} cannot be part of a key; copy the key again"
        raise SettingError(name, "...", remedy)
    return value


def read_token(env: Environment, name: str) -> str:
    """A secret of at least 16 characters without spaces; empty if it is not set."""
    value = read_secret(env, name)
    is_plain = value.isascii() and value.isprintable() and " " not in value
    if value and (len(value) < 16 or not is_plain):
        raise SettingError(name, "...", "give at least 16 ASCII characters without spaces")
    return value


def read_log_format(env: Environment) -> str:
    """GROVE_LOG_FORMAT: text or json."""
    try:
        return log_format(env)
    except ValueError:
        raise SettingError(VARIABLE, env[VARIABLE], f"give {TEXT} or {JSON}") from None


def read_integer(env: Environment, name: str, default: int, low: int, high: int) -> int:
    """A whole number within [low, high]."""
    value = env.get(name)
    if value is None or value == "":
        return default
    is_number = value.isascii() and value.isdigit() and len(value) < 20
    if is_number and low <= int(value) <= high:
        return int(value)
    raise SettingError(name, value, f"give a whole number from {low} to {high}")


def read_mebibytes(env: Environment, name: str, default: int) -> int:
    """A size given in MiB, returned in bytes."""
    return read_integer(env, name, default, 1, 2**40) << 20


def read_memory(env: Environment, name: str, percent: int) -> int:
    """A size given in MiB, returned in bytes; by default this share of the machine's memory."""
    return read_mebibytes(env, name, max(1, machine_memory() * percent // 100 >> 20))


def read_sandbox_caps(env: Environment) -> SandboxCaps:
    """The limits of a program, for every run and data set; on a server each limit has a default."""
    names = {name: variable(name) for name in DEFAULTS}
    return SandboxCaps(
        **{
            key: read_integer(env, name, DEFAULTS[key], 1, MAX_CAPS[key])
            for key, name in names.items()
        }
    )


def check_deadlines(env: Environment) -> None:
    """Refuses a deadline (`engine.config.deadlines`) that is unusable."""
    try:
        deadlines.check(env)
    except ConfigError as error:
        first = error.problems[0]
        raise SettingError(first["path"], first["value"], first["reason"]) from None


def read_list(env: Environment, name: str, default: list[str]) -> list[str]:
    """Words separated by commas; the default if the list is empty."""
    words = [word.strip() for word in env.get(name, "").split(",")]
    return [word for word in words if word] or default


def read_engine_environment(env: Environment, name: str) -> frozenset[str]:
    """Names of further variables that engines inherit, separated by commas; never one of the
    site's own, with which an engine could do what the site may."""
    names = frozenset(read_list(env, name, []))
    for word in sorted(names):
        if not _NAME.fullmatch(word):
            raise SettingError(name, word, "give names of environment variables, as in HF_TOKEN")
        if _OF_THE_SITE.match(word):
            raise SettingError(name, word, "an engine never gets this one; leave it out")
    return names


def read_path(env: Environment, name: str, default: Path) -> Path:
    """An absolute directory path; the directory need not exist yet."""
    value = env.get(name)
    if not value:
        return default
    try:
        path = Path(value).expanduser().resolve()
        path.exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise SettingError(name, value, f"give a directory ({error})") from None
    if printable(str(path)) != str(path):
        raise SettingError(name, value, "give a path that is text in UTF-8")
    return path


def read_var(env: Environment, name: str, default: Path) -> Path:
    """The directory of all that Grove writes; created if missing, and closed to other accounts."""
    path = read_path(env, name, default)
    try:
        keep_private(path)
    except SharedDirectory:
        remedy = "all accounts write there; give a directory of its own"
        raise SettingError(name, str(path), remedy) from None
    return path


def read_grove_var(env: Environment) -> Path:
    """GROVE_VAR, else the data directory of this installation (`webapp.config.installation`)."""
    name = "GROVE_VAR"
    try:
        default = Path() if env.get(name) else default_var(env)
    except RuntimeError as error:
        raise SettingError(name, "", f"name the data directory ({error})") from None
    return read_var(env, name, default)


def read_paths(env: Environment, name: str, default: Path) -> list[Path]:
    """Absolute directory paths from a comma-separated list; the directories need not exist yet."""
    return [read_path({name: word}, name, default) for word in read_list(env, name, [str(default)])]


def read_addresses(env: Environment, name: str) -> list[str]:
    """IP addresses and networks, as in 10.0.0.5,192.0.2.0/24, separated by commas; may be empty."""
    words = read_list(env, name, [])
    for word in words:
        try:
            ipaddress.ip_network(word)
        except ValueError as error:
            raise SettingError(
                name, env[name], f"give IP addresses or networks ({error})"
            ) from None
    return words


def read_site(env: Environment, name: str, https: bool, hosts: list[str], port: int) -> str:
    """The address at which people reach the site, without a path; by default its scheme, the first
    allowed host that is a name, and outside of HTTPS the port."""
    value = env.get(name, "").rstrip("/")
    if not value:
        host = next((one for one in hosts if not one.startswith(("*", "."))), "localhost")
        return f"https://{host}" if https else f"http://{host}:{port}"
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018  (reading it checks it)
    except ValueError as error:
        raise SettingError(name, value, f"is no address ({error})") from None
    extra = parts.path or parts.query or parts.fragment or "@" in parts.netloc or " " in value
    if parts.scheme not in ("http", "https") or not parts.hostname or extra:
        raise SettingError(name, value, "give scheme and host, as in https://grove.example")
    return value


def read_broker(env: Environment, name: str, default: str) -> str:
    """The URL of a message broker that kombu supports."""
    value = env.get(name) or default
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018  (reading it checks it)
    except ValueError:
        raise SettingError(name, value, f"{_NO_URL}; as in redis://host:6379/0") from None
    if parts.scheme not in _BROKERS:
        raise SettingError(name, value, f"its scheme must be one of {', '.join(_BROKERS)}")
    return value


def read_artifact_storage(env: Environment, directory: Path) -> dict[str, Any]:
    """The storage of artifacts, as an entry of Django's STORAGES: GROVE_S3_BUCKET (with
    GROVE_S3_ENDPOINT, _REGION, _KEY and _SECRET where needed; else the machine's own credentials),
    or `directory`."""
    bucket = env.get("GROVE_S3_BUCKET", "")
    if not bucket:
        options = {"location": directory, "allow_overwrite": True, "file_permissions_mode": 0o400}
        return {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": options}
    if importlib.util.find_spec("storages") is None:
        raise SettingError("GROVE_S3_BUCKET", bucket, "run: pip install 'grove-rl[s3]'")
    endpoint = env.get("GROVE_S3_ENDPOINT") or None
    if endpoint and urlsplit(endpoint).scheme not in ("http", "https"):
        raise SettingError("GROVE_S3_ENDPOINT", endpoint, "give an address, https://...")
    options = {
        "bucket_name": bucket,
        "endpoint_url": endpoint,
        "region_name": env.get("GROVE_S3_REGION") or None,
        "access_key": read_secret(env, "GROVE_S3_KEY") or None,
        "secret_key": read_secret(env, "GROVE_S3_SECRET") or None,
        "location": "artifacts",
        "default_acl": None,
    }
    return {"BACKEND": "webapp.artifacts.bucket.Bucket", "OPTIONS": options}


@dataclass(frozen=True, slots=True)
class Mail:
    """The SMTP server that sends mail."""

    host: str
    port: int
    user: str
    password: str
    starttls: bool
    tls: bool
    sender: str


def read_mail(env: Environment) -> Mail | None:
    """GROVE_MAIL_URL, as in smtp://user:password@host:587 (STARTTLS unless the host is this
    machine) or smtps://host:465, and GROVE_MAIL_FROM; None if no mail is configured."""
    value = env.get("GROVE_MAIL_URL")
    if not value:
        return None
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise SettingError("GROVE_MAIL_URL", value, _NO_URL) from None
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
        raise SettingError("GROVE_MAIL_URL", value, "give smtp://user:password@host:587")
    sender = env.get("GROVE_MAIL_FROM", "")
    if "@" not in sender or not sender.isprintable():
        raise SettingError("GROVE_MAIL_FROM", sender, "give the address that mail comes from")
    tls = parts.scheme == "smtps"
    return Mail(
        host=parts.hostname,
        port=port or (465 if tls else 587),
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        starttls=not tls and parts.hostname not in ("localhost", "127.0.0.1", "::1"),
        tls=tls,
        sender=sender,
    )


@dataclass(frozen=True, slots=True)
class Provider:
    """The organisation's OpenID provider."""

    issuer: str
    client: str
    secret: str
    name: str

    @property
    def origin(self) -> str:
        parts = urlsplit(self.issuer)
        return f"{parts.scheme}://{parts.netloc}"

    def app(self) -> dict[str, Any]:
        """The provider as an entry of allauth's `APPS`."""
        settings = {"server_url": self.issuer, "oauth_pkce_enabled": True}
        named = {"provider_id": "oidc", "name": self.name, "settings": settings}
        return {**named, "client_id": self.client, "secret": self.secret}


def read_provider(env: Environment) -> Provider | None:
    """GROVE_OIDC_ISSUER, GROVE_OIDC_CLIENT, GROVE_OIDC_SECRET; None if no issuer is configured."""
    issuer = env.get("GROVE_OIDC_ISSUER", "").rstrip("/")
    if not issuer:
        return None
    host = urlsplit(issuer).hostname
    is_near = issuer.startswith("http://") and host in ("localhost", "127.0.0.1")
    if not host or not (issuer.startswith("https://") or is_near):
        raise SettingError("GROVE_OIDC_ISSUER", issuer, "give its address, https://...")
    given = {name: read_secret(env, name) for name in ("GROVE_OIDC_CLIENT", "GROVE_OIDC_SECRET")}
    for name, value in given.items():
        if not value:
            raise SettingError(name, value, "give the value that the provider issued for this site")
    return Provider(issuer, *given.values(), name=env.get("GROVE_OIDC_NAME") or host)


def database_url(env: Environment, var: Path) -> str:
    """DATABASE_URL, else the URL that the embedded server writes to `var/postgres.url`.

    With neither, the socket where the embedded server would listen: commands that need no database
    still run, the others fail with the socket's path in the message.
    """
    if value := env.get("DATABASE_URL"):
        return value
    url_file = var / "postgres.url"
    if url_file.is_file():
        try:
            return url_file.read_text().strip()
        except (OSError, UnicodeDecodeError):
            pass  # damaged: treated as if the server had written nothing
    return f"postgresql://grove@/grove?host={quote(str(var / 'postgres'), safe='')}"


def database(url: str) -> dict[str, Any]:
    """Django's settings of the one database that a Postgres URL names."""
    if not url.startswith(("postgresql://", "postgres://")):
        raise SettingError("DATABASE_URL", url, "give a URL that starts with postgresql://")
    try:
        parts = conninfo_to_dict(url)
    except (ProgrammingError, ValueError) as error:
        raise SettingError("DATABASE_URL", url, str(error).strip()) from None
    for port in filter(None, str(parts.get("port", "")).split(",")):
        if not (port.isascii() and port.isdigit() and len(port) < 6 and 1 <= int(port) <= 65535):
            remedy = (
                "give a port from 1 to 65535; in a password, write @ : and / as %40 %3A and %2F"
            )
            raise SettingError("DATABASE_URL", url, remedy)
    named = {
        "NAME": parts.pop("dbname", ""),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": str(parts.pop("port", "")),
    }
    if "@" in str(named["HOST"]):
        raise SettingError("DATABASE_URL", url, "write @ of a password as %40")
    if not named["NAME"]:
        raise SettingError("DATABASE_URL", url, "name the database after the last slash")
    return {
        "ENGINE": "webapp.config.database",
        "CONN_HEALTH_CHECKS": True,  # a pooled connection may have ended with a restarted server
        **named,
        "OPTIONS": {**parts, "pool": {**_POOL, "timeout": DATABASE_CONNECTION.seconds}},
    }


def secret_key(env: Environment, var: Path) -> str:
    """GROVE_SECRET_KEY, else the key in `var/secret_key`, created on first use with mode 0600."""
    if value := env.get("GROVE_SECRET_KEY"):
        if len(value) < 32:
            raise SettingError("GROVE_SECRET_KEY", "...", "give at least 32 characters")
        return value
    path = var / "secret_key"
    try:
        try:
            return _stored_key(path)
        except FileNotFoundError:
            return _new_key(path)
    except OSError as error:
        remedy = f"{error.filename or path}: {error.strerror}; give a directory to write in"
        raise SettingError("GROVE_VAR", str(var), remedy) from None


def _new_key(path: Path) -> str:
    var = path.parent
    var.mkdir(parents=True, exist_ok=True)
    # Written to a draft and linked: of two processes that start concurrently, one key wins.
    descriptor, draft = tempfile.mkstemp(prefix=".secret_key.", dir=var)  # mode 0600
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(48))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        Path(draft).unlink()
    return _stored_key(path)


def _stored_key(path: Path) -> str:
    key = path.read_text(errors="replace").strip()
    if len(key) < 32 or not key.isascii():
        raise SettingError("GROVE_SECRET_KEY", "...", f"{path} is damaged; delete it")
    return key
