"""Settings of Django, all from `webapp.config.environment`. One Postgres, no other dialect."""

import os
from pathlib import Path

from engine.config.deadlines import DATASET_READ, MODEL_CHECK
from webapp.config import environment
from webapp.config.secret_files import read_secret_files
from webapp.http.fingerprint import fingerprint

BASE_DIR = Path(__file__).resolve().parents[2]
STATIC_DIR = (BASE_DIR / "webapp" / "static").resolve()  # a link to static/ in a checkout

read_secret_files(os.environ)
environment.check_deadlines(os.environ)
GROVE_VAR = environment.read_grove_var(os.environ)
GROVE_PORT = environment.read_integer(os.environ, "GROVE_PORT", 8000, 0, 65535)
DEBUG = environment.read_flag(os.environ, "GROVE_DEBUG", False)
SECRET_KEY = environment.secret_key(os.environ, GROVE_VAR)
ALLOWED_HOSTS = environment.read_list(
    os.environ, "GROVE_ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"]
)
GROVE_HTTPS = environment.read_flag(os.environ, "GROVE_HTTPS", False)
# Only these are trusted about a request's origin and scheme (X-Forwarded-For, -Proto).
TRUSTED_PROXIES = environment.read_addresses(os.environ, "GROVE_TRUSTED_PROXIES")
CONNECTIONS = environment.read_integer(os.environ, "GROVE_CONNECTIONS", 2000, 16, 60_000)
# Of these, event streams and websockets of one address.
STREAMS_PER_ADDRESS = environment.read_integer(
    os.environ, "GROVE_STREAMS_PER_ADDRESS", 500, 1, 60_000
)
# Address of the site in mail and webhooks, for which no request is at hand.
SITE_URL = environment.read_site(
    os.environ, "GROVE_SITE_URL", GROVE_HTTPS, ALLOWED_HOSTS, GROVE_PORT
)
OPERATORS = environment.read_list(os.environ, "GROVE_OPERATORS", [])
# Networks that webhooks may reach although they are not public.
ALERT_NETWORKS = environment.read_addresses(os.environ, "GROVE_ALERT_NETWORKS")
ALLOW_UNSAFE = environment.read_flag(os.environ, "GROVE_ALLOW_UNSAFE", False)
RUNS_DIR = GROVE_VAR / "runs"
# What a run started in the browser or by REST may read of this machine.
DATASETS_DIRS = environment.read_paths(os.environ, "GROVE_DATASETS", GROVE_VAR / "datasets")
MODELS_DIRS = environment.read_paths(os.environ, "GROVE_MODELS", GROVE_VAR / "models")

DATABASE_URL = environment.database_url(os.environ, GROVE_VAR)
DATABASES = {"default": environment.database(DATABASE_URL)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "accounts.User"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "pgtrigger",
    "pghistory",
    "webapp",
    "webapp.accounts",
    "webapp.alerts",
    "webapp.audit",
    "webapp.offboarding",
    "webapp.comments",
    "webapp.projects",
    "webapp.artifacts",
    "webapp.datasets",
    "webapp.experiments",
    "webapp.exports",
    "webapp.idempotency",
    "webapp.registry",
    "webapp.reports",
    "webapp.retention",
    "webapp.searches",
    "webapp.sharing",
    "webapp.telemetry",
    "workers",
]

MIDDLEWARE = [
    "webapp.http.port_of_proxy.PortOfProxy",
    # These three set headers of all responses, also of what the others refuse.
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "webapp.http.content_security_policy.ContentSecurityPolicy",
    "webapp.http.sub_path.NoSubPath",
    "webapp.rest.etag.RestETags",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "webapp.http.audit_context.AuditContext",
    "webapp.http.method_not_allowed.MethodNotAllowedPage",
    "webapp.http.content_security_policy.SignInRequired",
    "webapp.http.rate_limits.Limits",
    "webapp.idempotency.middleware.IdempotencyMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "webapp.config.urls"
ASGI_APPLICATION = "webapp.config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "webapp" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "webapp.experiments.run_settings.isolation.banner",
                "webapp.accounts.selectors.sign_in_options",
                "webapp.comments.selectors.unread",
            ]
        },
    }
]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
AUTH_PASSWORD_VALIDATORS.append({"NAME": "webapp.accounts.passwords.AccessRevokingValidator"})
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
LOGIN_URL = LOGOUT_REDIRECT_URL = "account_login"
LOGIN_REDIRECT_URL = "runs"
CSRF_FAILURE_VIEW = "webapp.http.error_pages.csrf_failure"

# allauth; its addresses are those of webapp.accounts.urls.
MAIL = environment.read_mail(os.environ)
MAIL_IS_SENT = MAIL is not None
OIDC = environment.read_provider(os.environ)
if MAIL:
    EMAIL_HOST, EMAIL_PORT = MAIL.host, MAIL.port
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = MAIL.user, MAIL.password
    EMAIL_USE_TLS, EMAIL_USE_SSL = MAIL.starttls, MAIL.tls
    EMAIL_TIMEOUT = 10
    DEFAULT_FROM_EMAIL = SERVER_EMAIL = MAIL.sender
ACCOUNT_ADAPTER = "webapp.projects.sign_up.InvitedAccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username", "email"} if MAIL else {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", *(["email*"] if MAIL else []), "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "mandatory" if MAIL else "none"
ACCOUNT_EMAIL_NOTIFICATIONS = MAIL_IS_SENT
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[Grove] "
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if GROVE_HTTPS else "http"
ACCOUNT_FORMS = {"change_password": "webapp.accounts.forms.PasswordForm"}  # nosec B105
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
MFA_ADAPTER = "webapp.accounts.adapters.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "Grove"
SOCIALACCOUNT_ADAPTER = "webapp.accounts.adapters.OrganisationAdapter"
SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [OIDC.app()] if OIDC else []}}

# Audit records (webapp.audit) are ordered by the time of each change.
PGHISTORY_CREATED_AT_FUNCTION = "clock_timestamp()"

# Calls and seconds (webapp.http.rate_limits): a burst of so many, then one every seconds / calls.
RATE_LIMITS = {
    "tokens": (30, 3600.0),  # creating tokens, links and invitations
    "guesses": (60, 600.0),  # invalid tokens and links, by address
    "alert tests": (30, 3600.0),  # test notices, which are posted to an address of the caller's
    "comments": (120, 3600.0),  # writing, which may send mail
    "ingest": (1200, 60.0),  # batches of events from engines that run elsewhere
    "exports": (600, 60.0),  # reading logs; a page that plays one requests several times a second
    "export files": (60, 3600.0),  # requesting exports, which a worker writes
    "workspace exports": (12, 3600.0),  # zips of everything
    "workspace imports": (12, 3600.0),  # requesting the check of one, which a worker does
    "guests": (120, 60.0),  # opening a shared comparison, which is computed anew; joining
}

# All web processes share the counts of allauth's limits: they are stored in the one database, at
# most so many, and enough that nobody clears their own by trying hundreds of names.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "accounts_cache",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}

# Uploads: where their bytes are stored, and how much is accepted.
STORAGES = {
    "artifacts": environment.read_artifact_storage(os.environ, GROVE_VAR / "artifacts"),
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
UPLOADS_DIR = GROVE_VAR / "uploads"
ARTIFACT_COPIES_DIR = GROVE_VAR / "artifact-copies"
MODEL_FOLDERS_DIR = GROVE_VAR / "model-versions"
ARTIFACT_CHUNK_BYTES = 8 << 20
ARTIFACT_QUOTA_BYTES = environment.read_mebibytes(os.environ, "GROVE_QUOTA_MIB", 102_400)
ARTIFACT_MOST_BYTES = {
    "dataset": environment.read_mebibytes(os.environ, "GROVE_DATASET_MIB", 2048),
    "model": environment.read_mebibytes(os.environ, "GROVE_MODEL_FILE_MIB", 51_200),
    # All that one person has here: such a zip is for no project, so no quota holds for it.
    "workspace": environment.read_mebibytes(os.environ, "GROVE_WORKSPACE_ZIP_MIB", 5_120),
}
SANDBOX_CAPS = environment.read_sandbox_caps(os.environ)
# The deadline by which an engine has left `starting`, and the memory of all its processes.
START_SECONDS = 60.0 * environment.read_integer(os.environ, "GROVE_START_MINUTES", 120, 1, 10_080)
ENGINE_MEMORY_BYTES = environment.read_memory(os.environ, "GROVE_ENGINE_MEMORY_MIB", 90)
# What engines inherit besides the list of `workers.runs.engine_environment`.
ENGINE_ENVIRONMENT = environment.read_engine_environment(os.environ, "GROVE_ENGINE_ENVIRONMENT")
# Limits of what costs nothing by itself: workspaces that a person owns, projects of a workspace,
# and events of all its runs.
MOST_WORKSPACES = environment.read_integer(os.environ, "GROVE_MOST_WORKSPACES", 100, 1, 2**31)
MOST_PROJECTS = environment.read_integer(os.environ, "GROVE_MOST_PROJECTS", 1000, 1, 2**31)
MOST_EVENTS = environment.read_integer(os.environ, "GROVE_MOST_EVENTS", 10**9, 1, 2**62)
# Limits of the process that reads an uploaded dataset.
DATASET_READ_SECONDS = DATASET_READ.whole_seconds
DATASET_READ_BYTES = 4 << 30
# Limit of a worker that checks or compares a dataset, and so the longest wait of other users.
DATASET_CHECK_SECONDS = 60.0 * environment.read_integer(
    os.environ, "GROVE_CHECK_MINUTES", 360, 1, 10**5
)
# Limits of the process that checks the files of a model.
MODEL_CHECK_SECONDS = MODEL_CHECK.whole_seconds
MODEL_CHECK_BYTES = 2 << 30
# Limits of the engine's command that converts a GGUF file, or downloads and converts a pretrained
# model, and of the process that imports the zip of a workspace. The deadline is below the day after
# which a scratch directory counts as forgotten.
IMPORT_SECONDS = 60.0 * environment.read_integer(os.environ, "GROVE_IMPORT_MINUTES", 60, 1, 1200)
IMPORT_CPU_SECONDS = 60.0 * environment.read_integer(
    os.environ, "GROVE_IMPORT_CPU_MINUTES", 120, 1, 10**5
)
IMPORT_MEMORY_BYTES = environment.read_memory(os.environ, "GROVE_IMPORT_MEMORY_MIB", 50)
# Indexes of the server's own problem files, from which a single problem can be read.
PROBLEM_INDEX_DIR = GROVE_VAR / "problem-indexes"
PROBLEM_INDEXES = 16

# Runs that a project and a user may have queued or active, and of these active, concurrently. Runs
# of external engines count among the first.
PROJECT_RUNS = environment.read_integer(os.environ, "GROVE_PROJECT_RUNS", 256, 1, 10**6)
USER_RUNS = environment.read_integer(os.environ, "GROVE_USER_RUNS", 128, 1, 10**6)
PROJECT_RUNNING = environment.read_integer(os.environ, "GROVE_PROJECT_RUNNING", 64, 1, 10**6)
USER_RUNNING = environment.read_integer(os.environ, "GROVE_USER_RUNNING", 64, 1, 10**6)

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

# Django finds webapp/static by itself, as it does every app's.
STATIC_URL = f"/static/{fingerprint(STATIC_DIR)}/"
# Files are served from their source folder: nothing to collect on one machine. Each is examined at
# every request, because a size remembered from the start breaks the response once the file is
# edited.
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = True
if not DEBUG:  # changed content has another address, so a browser requests once
    WHITENOISE_IMMUTABLE_FILE_TEST = f"^{STATIC_URL}"

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
# Probes and Prometheus reach this process at its own address and know no TLS.
SECURE_REDIRECT_EXEMPT = ["^healthz$", "^readyz$", "^metrics$"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = GROVE_HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if GROVE_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = GROVE_HTTPS

# The queue is never the truth (the Run row is), so an embedded folder does as well as Redis.
BROKER_URL = environment.read_broker(os.environ, "BROKER_URL", "filesystem://localhost")
BROKER_DIR = GROVE_VAR / "broker"

# Without it there are no metrics.
METRICS_TOKEN = environment.read_token(os.environ, "GROVE_METRICS_TOKEN")

LOG_FORMAT = environment.read_log_format(os.environ)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"context": {"()": "webapp.http.log_context.LogContext"}},
    "formatters": {
        "text": {
            "()": "engine.config.log_lines.TextLines",
            "fmt": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        },
        "json": {"()": "engine.config.log_lines.JsonLines"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMAT,
            "filters": ["context"],
        }
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {"django.request": {"level": "ERROR"}, "httpx": {"level": "WARNING"}},
}
