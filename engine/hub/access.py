"""The switch of the hub, its address, and the errors of its client as one sentence each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from engine.config.secrets import bare
from engine.hub.reference import HubError, HubReference, RepoType

if TYPE_CHECKING:  # most commands use no hub
    from huggingface_hub.errors import HfHubHTTPError

SWITCH, ENDPOINT, TOKEN = "GROVE_HUB", "HF_ENDPOINT", "HF_TOKEN"
DEFAULT_ENDPOINT = "https://huggingface.co"


def endpoint() -> str:
    """Returns the address of the hub: HF_ENDPOINT, or the public one."""
    return (os.environ.get(ENDPOINT) or DEFAULT_ENDPOINT).rstrip("/")


def shown_endpoint() -> str:
    """Returns the address without the user and password that it may hold."""
    parts = urlsplit(endpoint())
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def require_switch(subject: object) -> None:
    """Raises `HubError` unless the hub is switched on: by GROVE_HUB=1, or by HF_ENDPOINT where
    GROVE_HUB is unset. Removes what is no part of HF_TOKEN around it, which no request can send."""
    if TOKEN in os.environ:
        os.environ[TOKEN] = bare(os.environ[TOKEN])
    switch = os.environ.get(SWITCH, "")
    if switch not in ("", "0", "1"):
        raise HubError(f"{SWITCH} = {switch}: write 1 to use a Hugging Face hub, or 0")
    if switch == "0" or not (switch or os.environ.get(ENDPOINT)):
        raise HubError(
            f"{subject}: the Hugging Face hub is switched off; set {SWITCH}=1 to use "
            f"{shown_endpoint()}, and {ENDPOINT} for a hub of your own"
        )


@contextmanager
def one_sentence(reference: HubReference) -> Iterator[None]:
    """Context in which errors of the client become a `HubError` with the remedy."""
    from huggingface_hub.errors import (
        FileMetadataError,
        HTTPError,  # of the client's HTTP library: base of all its errors
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
    )

    try:
        yield
    except HubError:
        raise
    except (
        HTTPError,
        FileMetadataError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        ValueError,  # a response that is no JSON, or none of a hub
    ) as error:
        raise HubError(f"{reference}: {_reason(reference, error)}") from None


def _reason(reference: HubReference, error: BaseException) -> str:
    from huggingface_hub.errors import FileMetadataError, GatedRepoError, RepositoryNotFoundError
    from huggingface_hub.errors import RevisionNotFoundError as NoRevision

    hub = shown_endpoint()
    response_error = _response_error(error)
    if response_error is None:
        root = _root(error)
        if isinstance(root, (FileMetadataError, ValueError)):
            return f"{hub} does not respond as a hub does ({_first_line(root)}); check {ENDPOINT}"
        return (
            f"the hub {hub} cannot be reached ({type(root).__name__}); check the network, "
            f"{ENDPOINT} and HF_HUB_OFFLINE, or name a commit that was downloaded before"
        )
    what = f"the {reference.repo_type} {reference.repository}"
    if isinstance(response_error, GatedRepoError):
        return (
            f"{what} is gated: accept its terms on {_page(reference)}, and set HF_TOKEN to a token "
            "of that account"
        )
    if isinstance(response_error, NoRevision):
        return f"{hub} has no revision {reference.revision} of {what}; name a branch, tag or commit"
    if isinstance(response_error, RepositoryNotFoundError):
        return (
            f"{hub} shows {what} to {_whom()} neither as public nor as readable; check the name, "
            "or set HF_TOKEN to a token that may read it"
        )
    status = response_error.response.status_code
    if status in (401, 403):
        return (
            f"{hub} refuses {_whom()} ({status}); set HF_TOKEN to a valid token that may read "
            f"{what}"
        )
    return f"{hub} responds to the request for {what} with status {status}; try again later"


def _whom() -> str:
    from huggingface_hub import get_token

    return "the token of HF_TOKEN or of `hf auth login`" if get_token() else "a request without one"


def _page(reference: HubReference) -> str:
    kind = "datasets/" if reference.repo_type is RepoType.DATASET else ""
    return f"{shown_endpoint()}/{kind}{reference.repository}"


def _response_error(error: BaseException | None) -> HfHubHTTPError | None:
    """Returns the error of a response behind an error; None if the hub did not respond."""
    from huggingface_hub.errors import HfHubHTTPError

    while error is not None and not isinstance(error, HfHubHTTPError):
        error = error.__cause__
    return error


def _root(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
