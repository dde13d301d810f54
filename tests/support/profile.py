"""A profile of Anthropic's command line, as `ant auth login` leaves it on the disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TOKEN = "sk-ant-oat-of-the-profile"
FAR = 4_000_000_000
"""Seconds since 1970 at which a token is still good."""


def write_profile(
    folder: Path, name: str, *, base_url: str = "", expires_at: int = FAR, client_id: str = ""
) -> Path:
    """Write a profile into the SDK's configuration folder. Returns the file without secrets.

    With a `client_id` the SDK renews the token at `expires_at`.
    """
    auth: dict[str, Any] = {"type": "user_oauth"}
    tokens: dict[str, Any] = {"access_token": TOKEN, "expires_at": expires_at}
    if client_id:
        auth["client_id"] = client_id
        tokens["refresh_token"] = "refresh-1"
    config = {"authentication": auth} | ({"base_url": base_url} if base_url else {})
    file = folder / "configs" / f"{name}.json"
    secret = folder / "credentials" / f"{name}.json"
    for path, content in ((file, config), (secret, tokens)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    file.chmod(0o644)
    secret.chmod(0o600)
    return file
