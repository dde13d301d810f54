"""Asking a server for its list of models: does it answer, and does it take the key?

The smallest request that there is. No content is sent; the key goes to this server alone, so no
redirect is followed.
"""

from __future__ import annotations

from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

TIMEOUT_S = 3.0


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def models(server: str, key: str | None, *, timeout_s: float = TIMEOUT_S) -> tuple[int | None, str]:
    """The HTTP status of GET /v1/models, or None and why there was no answer. Blocks."""
    headers = {"accept": "application/json", "anthropic-version": "2026-10-21"}
    if key:
        headers |= {"authorization": f"Bearer {key}", "x-api-key": key}
    try:
        request = Request(f"{server}/v1/models?limit=1", headers=headers)  # noqa: S310 - http(s) only
        with build_opener(_Stay).open(request, timeout=timeout_s) as answer:
            return int(answer.status), ""
    except HTTPError as error:
        with error:
            return error.code, ""
    except URLError as error:
        return None, _why(error.reason)
    except (OSError, HTTPException, ValueError) as error:
        return None, _why(error)


def _why(reason: object) -> str:
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, OSError):
        return reason.strerror or str(reason)
    return str(reason) or type(reason).__name__
