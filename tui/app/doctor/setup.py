"""Configuration, key and servers. The key is never shown, and goes only to its own server."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from tui.agent.launch import BARE, BARE_HINT, PRACTICE
from tui.app.doctor.check import Check, Subject
from tui.core.checkers import KNOWN, configured, program_of
from tui.core.clouds import access_of
from tui.core.config import profile_of
from tui.core.errors import CredentialsError
from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.core.workspace import safe_search_path
from tui.settings import credentials, layers, mcp_json
from tui.settings.credentials import server_of
from tui.settings.layers import UNTRUSTED
from tui.settings.profiles import UnknownProfileError
from tui.settings.sign_in import SignIn
from tui.settings.trust import trust_of, trusted_programs

_TIMEOUT_S = 3.0
_SIGN_IN_S = 10.0
_TOO_LATE = "no answer in time"
_UNREAD = "not checked: the settings that name the server can't be read"
_NO_KEYRING = (
    "A key in the system's keyring can't be read here: the extra holdfast[keyring] isn't installed."
)
_NO_KEY = (
    "Set ANTHROPIC_API_KEY, sign in with `ant auth login`, or run `holdfast` and paste a key;"
    " --practice needs none."
)


def configuration(what: Subject) -> Iterator[Check]:
    """The files, and what of them does not count."""
    if what.bare:
        yield Check("bare", "ok", BARE)
    if what.broken is not None:
        helps = not what.bare and not isinstance(what.broken, UnknownProfileError)
        meanwhile = BARE_HINT if helps else ""
        fix = f"{what.broken.hint} {meanwhile}".strip()
        yield Check("configuration", "fail", what.broken.message, fix)
        return
    servers = mcp_json.path_of(what.workspace)
    files = (what.folders.config_file, layers.project_file(what.workspace), servers)
    there = [shorten(file) for file in files if file.exists()]
    yield Check("configuration", "ok", ", ".join(there) or "none: all settings are defaults")
    for file in dict.fromkeys(one.file for one in what.ignored):
        of_file = [one for one in what.ignored if one.file == file]
        if keys := ", ".join(one.key for one in of_file if one.reason == UNTRUSTED):
            fix = "Open holdfast in this folder and trust it, or run with --trust."
            yield Check("project", "warn", f"{shorten(file)}: not applied: {keys}", fix)
        for one in of_file:
            if one.reason != UNTRUSTED:
                problem = f"{shorten(file)}: {one.key} not applied: {one.reason}"
                yield Check("project", "warn", problem, "Fix the entry.")
    if what.profiles:
        by = f", named by {what.profile.chosen_by}" if what.profile.chosen_by else ""
        others = ", ".join(one_line(one) for one in what.profiles if one != what.profile.name)
        there = f"; others: {others}" if others else ""
        yield Check("profile", "ok", f"{what.profile.shown}{by}{there}")
    model = what.config.model
    fallback = (
        f", then {', '.join(what.config.fallback_models)}" if what.config.fallback_models else ""
    )
    yield Check("model", "ok", f"{model}{fallback}")


def key(what: Subject) -> Iterator[Check]:
    """Check what signs requests to the server, and where it is. Up to 2 s with a slow keyring, and
    10 s with a cloud's sign-in."""
    if what.broken is not None:
        yield Check("key", "ok", _UNREAD)
        return
    if what.config.provider.kind != "anthropic":
        yield _cloud_key(what)
        return
    try:
        credential = _credential(what)
    except CredentialsError as error:
        yield Check("key", "fail", error.message, error.hint)
        return
    server = server_of(what.config.base_url)
    if credential:
        words = credentials.in_words(credential, env=what.env, folders=what.folders)
        server = server_of(credential.base_url) if isinstance(credential, SignIn) else server
        whose = f" (profile {what.profile.name})" if what.profile.has_own_key else ""
        yield Check("key", "ok", f"{words}, for {server}{whose}")
    elif what.profile.key_from == "none":
        yield Check("key", "ok", f"no key for {server}, as profile {what.profile.name} says")
    elif what.profile.has_own_key:
        name = what.profile.name
        fix = f"Run holdfast --profile {shlex.quote(name)} and enter one, or set its key_from."
        yield Check("key", "fail", f"profile {name} has no key for {server}", fix)
    elif what.config.base_url:
        yield Check("key", "ok", f"no key for {server}, which may not need one")
    elif what.config.model == PRACTICE:
        yield Check("key", "ok", "none; the practice model needs none (/login connects another)")
    else:
        unread = f" {_NO_KEYRING}" if credentials.keyring_is_missing(what.env) else ""
        yield Check("key", "fail", "none", f"{_NO_KEY}{unread}")


def fallbacks(what: Subject) -> Iterator[Check]:
    """Check what signs requests through the other profiles that the fallbacks name: a session works
    without it, and asks none of them."""
    named = dict.fromkeys(map(profile_of, what.config.fallback_models))
    for name in named:
        if name and name != what.profile.shown:
            other = Subject.of(what.workspace, what.folders, what.env, profile=name)
            for one in key(other):
                status = "warn" if one.status == "fail" else one.status
                yield Check("fallback", status, f"@{name}: {one.detail}", one.fix)


def _cloud_key(what: Subject) -> Check:
    """Sign in to the cloud that the settings choose, by its own chain of credentials."""
    from tui.provider.anthropic import cloud_clients  # noqa: PLC0415 - few have one

    access = access_of(what.config, what.env)
    assert access is not None
    ends: list[CredentialsError | None] = []

    def sign_in() -> None:
        try:
            access.check()
            cloud_clients.sign_in(access)
        except CredentialsError as error:
            ends.append(error)
        else:
            ends.append(None)

    signing = Thread(target=sign_in, daemon=True, name="sign-in")
    signing.start()
    signing.join(_SIGN_IN_S)
    if not ends:
        hint = cloud_clients.sign_in_hint(access)
        return Check("key", "warn", f"{access}: {access.identity} gave no answer in time", hint)
    if (error := ends[0]) is not None:
        return Check("key", "fail", error.message, error.hint)
    return Check("key", "ok", f"{access.identity}, for {access}")


def _credential(what: Subject) -> credentials.Credential | None:
    foreign = what.foreign_server
    return credentials.find_credential(
        what.env, what.folders, what.config.base_url, foreign=foreign, profile=what.profile
    )


def server(what: Subject) -> Iterator[Check]:
    """Check that the server answers. Asked only where there is something to ask it with."""
    config = what.config
    if what.broken is not None:  # another server than theirs would get the key
        yield Check("server", "ok", _UNREAD)
        return
    if config.provider.kind != "anthropic":
        where = cloud.address if (cloud := access_of(config, what.env)) else ""
        yield Check("server", "ok", f"{where or 'none'}; not asked, since each request costs")
        return
    try:
        credential = _credential(what)
    except CredentialsError:
        credential = None
    signed_in = credential if isinstance(credential, SignIn) else None
    token = credential.key if isinstance(credential, credentials.ApiKey) else None
    name = server_of(config.base_url or (signed_in.base_url if signed_in else ""))
    if credential is None and not config.base_url:
        yield Check("server", "ok", "not checked: no key")
        return
    started = time.monotonic()
    status, why = ask_for_models(name, token)
    timing = f"{name} answers in {(time.monotonic() - started) * 1000:.0f} ms"
    if status is None:
        fix = "Check the connection, HTTPS_PROXY and base_url."
        yield Check("server", "fail", f"can't reach {name}: {why}", fix)
    # the check sends no token of a sign-in, so that a refusal says nothing about it
    elif status in {401, 403} and signed_in:
        yield Check("server", "ok", f"{timing}; {signed_in} signs in with the first request")
    elif status in {401, 403} and token:
        fix = "Enter another key: run `holdfast`, or set ANTHROPIC_API_KEY."
        yield Check("server", "fail", f"{name} rejects the key ({status})", fix)
    elif status in {401, 403}:
        yield Check("server", "warn", f"{name} needs a key ({status})", _NO_KEY)
    elif status == 429 or status >= 500:
        fix = "Requests are retried; if this continues, try later."
        yield Check("server", "warn", f"{timing}, with {status}", fix)
    else:
        result = "the key works" if token and status == 200 else f"with {status}"
        yield Check("server", "ok", f"{timing}, {result}")


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def ask_for_models(server: str, key: str | None) -> tuple[int | None, str]:
    """The HTTP status of GET /v1/models, or None and why there was no answer. Blocks.

    That is the smallest request there is: no content is sent. The key goes to this server alone,
    so no redirect is followed. A server that answers byte by byte has no more time than others, and
    keeps no program from ending.
    """
    answers: list[tuple[int | None, str]] = []
    asking = Thread(
        target=lambda: answers.append(_models_of(server, key)), daemon=True, name="list of models"
    )
    asking.start()
    asking.join(_TIMEOUT_S)
    return answers[0] if answers else (None, _TOO_LATE)


def _models_of(server: str, key: str | None) -> tuple[int | None, str]:
    headers = {"accept": "application/json", "anthropic-version": "2026-10-21"}
    if key:
        headers |= {"authorization": f"Bearer {key}", "x-api-key": key}
    try:
        request = Request(f"{server}/v1/models?limit=1", headers=headers)  # noqa: S310 - http(s) only
        with build_opener(_Stay).open(request, timeout=_TIMEOUT_S) as answer:
            return int(answer.status), ""
    except HTTPError as error:
        with error:
            return error.code, ""
    except URLError as error:
        return None, _why(error.reason)
    except HTTPException:  # its text is what the server sent
        return None, "its answer isn't HTTP"
    except (OSError, ValueError) as error:
        return None, _why(error)


def _why(reason: object) -> str:
    if isinstance(reason, TimeoutError):
        return _TOO_LATE
    if isinstance(reason, OSError):
        return reason.strerror or str(reason)
    return str(reason) or type(reason).__name__


def mcp(what: Subject) -> Iterator[Check]:
    """The MCP servers that are configured. None is started or asked."""
    servers = what.config.mcp
    if not servers:
        yield Check("mcp", "ok", "no servers configured")
        return
    lost = {
        name: one.words[0]
        for name, one in servers.items()
        if one.words and "${" not in one.words[0] and not _exists(one.words[0], what.workspace)
    }
    yield Check(
        "mcp", "ok", f"{plural(len(servers), 'server')}: {', '.join(servers)}; not contacted"
    )
    for name, command in lost.items():
        fix = f"Install it, or fix mcp.{name}.command."
        yield Check("mcp", "warn", f"{name}: {command} not found", fix)


def otel(what: Subject) -> Iterator[Check]:
    """Check that the person's collector answers. It is sent a request without spans."""
    settings = what.config.otel
    if not settings.enabled:
        yield Check("otel", "ok", "off: no spans are sent")
        return
    from tui.agent import span_collector  # noqa: PLC0415 - few send spans

    if span_collector.switched_off(what.env):
        yield Check("otel", "ok", "off: OTEL_SDK_DISABLED is true")
        return
    try:
        collector = span_collector.collector_of(settings, what.env)
    except span_collector.CollectorError as error:
        yield Check("otel", "fail", error.message, error.hint)
        return
    content = "with content" if settings.content else "without content"
    done = collector.deliver((), within_s=_TIMEOUT_S)
    if done.outcome == "taken":
        detail = f"spans go to {collector.name}, {content}, as {collector.protocol}"
        yield Check("otel", "ok", detail)
    else:
        fix = "Start the collector, or fix [otel] in your config.toml: `holdfast help otel`."
        yield Check("otel", "warn", f"{collector.name} doesn't take spans: {done.why}", fix)


def diagnostics(what: Subject) -> Iterator[Check]:
    """Check what would find problems in edited files. Nothing is started."""
    settings, root = what.config.diagnostics, what.workspace
    if settings.mode == "off":
        yield Check("diagnostics", "ok", "off: edited files aren't checked")
        return
    own = {name: configured(one, name) for name, one in settings.checkers.items()}
    brought = trusted_programs(root, trust_of(what.folders, root))
    path = safe_search_path(what.env.get("PATH", ""), (root,))
    off = {name for name, one in own.items() if one.off}
    every = {name: one for name, one in {**KNOWN, **own}.items() if name not in off}
    available = [name for name, one in every.items() if program_of(one, root, brought, path)]
    some = ", ".join(available)
    yield Check("diagnostics", "ok", f"{some}; started after edits" if some else "no checker found")
    for name in own.keys() - off - set(available):
        program = next(iter(own[name].words), "its command")
        fix = f"Install it, or fix diagnostics.checkers.{name}."
        yield Check("diagnostics", "warn", f"{name}: {program} not found", fix)


def _exists(command: str, workspace: Path) -> bool:
    path = Path(command).expanduser()
    return (workspace / path).exists() if "/" in command else shutil.which(command) is not None
