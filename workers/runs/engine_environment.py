"""The environment that a worker hands to an engine: variables that are known, and no other.

Invariant: a variable of the worker reaches an engine only if it is listed here, or the operator
named it in GROVE_ENGINE_ENVIRONMENT. No run of the site needs the key of a hub, of a cloud or of an
endpoint: its settings may name none of them (`webapp.experiments.run_settings.paths`).
"""

from __future__ import annotations

import os
import re

from django.conf import settings

from engine.config import deadlines
from engine.config.log_lines import VARIABLE
from workers.python_warnings import without_errors

ALLOWED = {
    # The account, its language and its folders.
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "HOSTNAME",
    "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    # Where Python and the libraries are, and how they are loaded.
    "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "PYTHONHASHSEED",
    "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE", "PYTHONFAULTHANDLER", "PYTHONWARNINGS",
    "PYTHONUTF8", "PYTHONIOENCODING", "LD_LIBRARY_PATH", "LD_PRELOAD", "LIBRARY_PATH", "CPATH",
    "CC", "CXX",
    # The client of a hub, which an engine uses without network: folders and switches alone.
    "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "TRANSFORMERS_CACHE",
    "TRANSFORMERS_VERBOSITY", "TOKENIZERS_PARALLELISM",
    # What the operator allows an engine, by which it refuses settings at its start.
    "GROVE_ENGINE_MEMORY_MIB",
    # How long it waits on a busy machine.
    *deadlines.VARIABLES,
    # Where it serves its metrics.
    "GROVE_ENGINE_METRICS", "GROVE_ENGINE_METRICS_TOKEN_FILE",
    # How to join the operator's cluster.
    "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH",
}  # fmt: skip
FAMILIES = re.compile(
    r"(LC|CUDA|CUBLAS|CUDNN|NVIDIA|NVTE|ROCR|ROCM|HIP|HSA|MIOPEN|RCCL|NCCL|GLOO|UCX|FI|OMP|KMP|GOMP"
    r"|MKL|OTEL|OPENBLAS|NUMEXPR|ATEN|TORCH|TORCHINDUCTOR|TORCHELASTIC|PYTORCH|TRITON|VLLM|RAY|MALLOC"
    r"|SLURM)_[A-Za-z0-9_]+"
)
"""Settings of libraries, by the prefix that each gives to all of its own."""
SECRET = re.compile(
    r"(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|CREDENTIALS?|AUTH|JWT|HEADERS)(_|$)",
    re.I,
)
"""Names within a family that may hold a secret, such as NVIDIA_API_KEY, SLURM_JWT or
OTEL_EXPORTER_OTLP_HEADERS."""
DOWNLOADS = re.compile(
    r"PIP_[A-Z_]+|(HTTP|HTTPS|ALL|NO)_PROXY|(http|https|all|no)_proxy|SSL_CERT_(FILE|DIR)"
    r"|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
)
"""What a download needs: the index, the proxy, and who vouches for them."""


def engine_environment() -> dict[str, str]:
    """Returns what an engine inherits of our environment, plus the caps of the sandbox and the
    format of log lines."""
    inherited = {name: value for name, value in os.environ.items() if is_allowed(name)}
    ours = {**settings.SANDBOX_CAPS.environment(), VARIABLE: settings.LOG_FORMAT}
    return {**without_errors(inherited), **ours, "PYTHONUNBUFFERED": "1"}


def download_environment() -> dict[str, str]:
    """Returns what an engine that downloads a package inherits in addition."""
    return {name: value for name, value in os.environ.items() if DOWNLOADS.fullmatch(name)}


def is_allowed(name: str) -> bool:
    """Returns whether an engine inherits the variable."""
    if name in ALLOWED or name in settings.ENGINE_ENVIRONMENT:
        return True
    return FAMILIES.fullmatch(name) is not None and SECRET.search(name) is None
