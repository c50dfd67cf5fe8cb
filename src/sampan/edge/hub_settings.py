"""Where the hubs are and who we are there: as their own libraries have it from environment and login."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sampan.errors import NetworkError, UsageError

_LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class HubAccess:
    """``headers`` carry the token, where there is one; they go to ``endpoint`` alone and are never printed."""

    endpoint: str  # without a final slash
    headers: dict[str, str] = field(default_factory=dict, repr=False)


def access(hub: str) -> HubAccess:
    """``hf`` (HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, login) or ``ms`` (MODELSCOPE_ENDPOINT, _DOMAIN, _API_TOKEN).

    Raises NetworkError where the user wants no network, UsageError for an endpoint that is no address.
    """
    endpoint, headers = _hugging_face() if hub == "hf" else _modelscope()
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError("hub.endpoint", value=endpoint)
    secret = parts.scheme == "https" or parts.hostname in _LOCAL
    return HubAccess(endpoint.rstrip("/"), headers if secret else {})


def _hugging_face() -> tuple[str, dict[str, str]]:
    from huggingface_hub import constants, get_token  # noqa: PLC0415  (0.4 s that only a fetch need pay)

    if os.environ.get("HF_HUB_OFFLINE", "").upper() in constants.ENV_VARS_TRUE_VALUES:
        raise NetworkError("hub.offline", host="HF_HUB_OFFLINE=1", detail="HF_HUB_OFFLINE")
    token = get_token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return os.environ.get("HF_ENDPOINT") or constants.ENDPOINT, headers


def _modelscope() -> tuple[str, dict[str, str]]:
    from modelscope_hub.config import HubConfig  # noqa: PLC0415

    config = HubConfig()
    headers = {"Cookie": f"m_session_id={config.token}"} if config.token else {}
    return str(config.endpoint), headers
